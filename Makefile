# Each target calls start.py, which needs only a Python 3.8+ to find or make everything else.
PYTHON ?= python3
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test check chaos bench lock reset

help:
	@echo "make run      start everything at http://127.0.0.1:8000 (PORT=8001 for another port); Ctrl-C stops it"
	@echo "make test     run all tests                              (ARGS='-k name' to choose)"
	@echo "make check    lint, format, types, import rules, Django checks"
	@echo "make chaos    kill -9 at every named point, then a soak   (SECONDS=300 SEED=1; about half an hour)"
	@echo "make bench    figures: web process, time of a cycle"
	@echo "make lock     refresh requirements.txt and requirements-dev.txt"
	@echo "make reset    delete the data kept on this machine       (YES=1 asks nothing)"

run:
	@$(PYTHON) start.py run $(ARGS)

test:
	@$(PYTHON) start.py test $(ARGS)

chaos:
	@$(PYTHON) start.py test -m chaos tests/chaos tests/processes $(ARGS)

bench:
	@$(PYTHON) start.py test -m bench -s tests/bench $(ARGS)

check:
	@$(PYTHON) start.py check

lock:
	@$(PYTHON) start.py lock

reset:
	@$(PYTHON) start.py reset
