"""The Celery application. A message is a hint; Postgres holds what it is about."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("COUNTERSEAL_PROCESS", "worker")
# Before langgraph is imported: no foreign class at load.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
os.environ.setdefault("LANGSMITH_TRACING", "false")
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # they import the pages; migrate has run them

from celery import Celery
from django.conf import settings

# Longer than any drive may take, else Redis hands the message to a second worker while the first still works.
VISIBILITY_SECONDS = 900
LOOK_UP_SECONDS = 10.0
TRAIL_SECONDS = 3600.0  # between two looks at the whole audit trail

app = Celery("counterseal", broker=settings.CELERY_BROKER_URL)
app.conf.update(
    include=[] if settings.PROCESS == "beat" else ["approvals.tasks"],  # beat sends names, it needs no engine
    task_acks_late=True,  # ack after the work ...
    task_reject_on_worker_lost=True,  # ... and not when the process was killed; run.attempts in Postgres ends the loop
    task_ignore_result=True,
    task_default_queue="default",
    worker_prefetch_multiplier=1,
    worker_soft_shutdown_timeout=20,  # a deploy lets a tool finish
    worker_hijack_root_logger=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,  # a drive does not depend on the broker
    worker_max_tasks_per_child=200,
    task_serializer="json",
    accept_content=["json"],
    broker_connection_retry_on_startup=True,
    visibility_timeout=VISIBILITY_SECONDS,  # must stand here, in the transport options and in the result options
    result_backend_transport_options={"visibility_timeout": VISIBILITY_SECONDS},
    broker_transport_options={
        "visibility_timeout": VISIBILITY_SECONDS,
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,  # the defaults return a dead worker's message only after about 100 s
        "socket_timeout": 5,  # default None: a publish to a frozen Redis hangs for ever, even with retry=False
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "queue_order_strategy": "priority",  # the order of -Q: answers before new runs
    },
    beat_schedule={
        "sweep": {
            "task": "approvals.sweep",
            "schedule": float(settings.SWEEP_SECONDS),
            "options": {"expires": settings.SWEEP_SECONDS * 3},
        },
        "look-up": {
            "task": "approvals.look_up",
            "schedule": LOOK_UP_SECONDS,
            "options": {"expires": LOOK_UP_SECONDS},
        },
        "audit trail": {
            "task": "approvals.check_trail",
            "schedule": TRAIL_SECONDS,
            "options": {"expires": TRAIL_SECONDS},
        },
        **{
            f"canary of {queue}": {
                "task": "approvals.canary",
                "schedule": float(settings.CANARY_SECONDS),
                "args": [queue],
                "options": {"queue": queue, "expires": 600},  # behind a long queue it comes late, and says so
            }
            for queue in settings.QUEUES
        },
    },
)
