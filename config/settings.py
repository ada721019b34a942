"""Settings of every process. Each comes from an environment variable; the defaults run everything on one machine."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from django.utils.csp import CSP
from django.utils.translation import gettext_lazy as _

from config import embedded, env

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = embedded.state_dir()

PROCESS = env.text("COUNTERSEAL_PROCESS", "command")  # web, worker, beat, command
DEBUG = env.flag("COUNTERSEAL_DEBUG", False)
EMBEDDED_POSTGRES = not env.text("DATABASE_URL")
EMBEDDED_REDIS = not env.text("REDIS_URL")
DEMO = env.flag(
    "COUNTERSEAL_DEMO", EMBEDDED_POSTGRES
)  # demo accounts and data; refused off loopback by a check
ALLOWED_HOSTS = env.words("COUNTERSEAL_HOSTS", "localhost,127.0.0.1,[::1]")
ORIGINS = env.words("COUNTERSEAL_ORIGINS")  # full origins that may open sockets; empty: the host's own
HTTPS = env.flag("COUNTERSEAL_HTTPS", False)


def _secret_key() -> str:
    """From the environment, else a random one kept in the state folder: sessions survive a restart."""
    if given := env.text("COUNTERSEAL_SECRET_KEY"):
        return given
    if not DEMO:
        raise env.BadSetting("COUNTERSEAL_SECRET_KEY is not set: give it 50 random characters.")
    path = STATE_DIR / "secret_key"
    try:
        return path.read_text()
    except OSError:
        fresh = secrets.token_urlsafe(48)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(fresh)
    except OSError as error:
        raise env.BadSetting(f"Cannot write {path}: {error.strerror}. Set COUNTERSEAL_STATE_DIR.") from None
    return fresh


SECRET_KEY = _secret_key()

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "django_htmx",
    "lucide",
    "approvals",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "approvals.middleware.ProbesMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "approvals.middleware.PersonSettingsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "approvals.middleware.SignedInPagesMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
AUTH_USER_MODEL = "approvals.User"
LOGIN_URL = "approvals:login"
LOGIN_REDIRECT_URL = "approvals:home"
LOGOUT_REDIRECT_URL = "approvals:login"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "approvals.contexts.frame",
            ]
        },
    }
]


# --- Postgres: every truth ----------------------------------------------------------------------------------------
# A process that freezes half way through a change keeps its locks, the counter of live updates among them, and everybody
# would wait for it: the server ends its transaction. No change of ours waits for anything between two statements.
HALF_DONE = "-c idle_in_transaction_session_timeout=10s"


def _database() -> dict[str, Any]:
    given: dict[str, Any] = (
        embedded.database_parameters() if EMBEDDED_POSTGRES else env.database_parameters("DATABASE_URL")
    )
    options: dict[str, Any] = dict(given.pop("OPTIONS", None) or {})
    if PROCESS == "web":
        # One pool per web process. Workers have none: a drive owns its session (agents/runtime.py).
        options["pool"] = {
            "min_size": 1,
            "max_size": env.number("COUNTERSEAL_WEB_CONNECTIONS", 12),
            "timeout": 10,
        }
        options["options"] = f"-c lock_timeout=5s -c statement_timeout=30s {HALF_DONE}"
    else:
        # The keyword settings make the client notice a dead server, the `-c` ones the server a dead client.
        options |= {
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
        }
        options["options"] = (
            "-c client_connection_check_interval=2s -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 "
            f"-c tcp_keepalives_count=3 -c tcp_user_timeout=10000 -c idle_session_timeout=0 {HALF_DONE}"
        )
    return {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": 0, **given, "OPTIONS": options}


DATABASES = {"default": _database()}

# --- Redis: hints that may be lost at any time ---------------------------------------------------------------------
REDIS_URL = embedded.valkey_url(0) if EMBEDDED_REDIS else env.text("REDIS_URL")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "approvals.notify.HintLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_connect_timeout": 2, "socket_timeout": 5}]},
    }
}
CELERY_BROKER_URL = env.celery_url(REDIS_URL)
CELERY_APP = "config.celery.app"
QUEUES = ("resume", "start", "default")  # in this order: answers before new runs

# --- How long things take ---------------------------------------------------------------------------------------
SWEEP_SECONDS = env.number("COUNTERSEAL_SWEEP_SECONDS", 3)
STALE_SECONDS = env.number(
    "COUNTERSEAL_STALE_SECONDS", 6
)  # an open run that was not touched so long gets a hint
FROZEN_SECONDS = env.number(
    "COUNTERSEAL_FROZEN_SECONDS", 120
)  # the owner of a run that did not breathe so long is taken for dead
SECOND_PERSON_OVER = env.number("COUNTERSEAL_SECOND_PERSON_OVER", 5000)  # amount, whatever the currency
MAX_ATTEMPTS = env.number("COUNTERSEAL_MAX_ATTEMPTS", 5)  # unclean drives in a row before a person is told
CANARY_SECONDS = env.number("COUNTERSEAL_CANARY_SECONDS", 20)  # between two proofs that workers consume

# --- Safety ---------------------------------------------------------------------------------------------------------
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "font-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "object-src": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]  # asked from inside, without TLS
METRICS_TOKEN = env.text("COUNTERSEAL_METRICS_TOKEN")  # empty: only this machine may read /metrics
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CSRF_TRUSTED_ORIGINS = ORIGINS
SESSION_COOKIE_AGE = 12 * 3600
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# --- Languages, time, files ------------------------------------------------------------------------------------------
USE_I18N = USE_TZ = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATIC_ROOT = STATE_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

SHOP_URL = env.text("COUNTERSEAL_SHOP_URL", "http://127.0.0.1:8001")

# `json` for collectors of logs, else plain lines. Neither holds arguments of a call.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"()": "config.logs.Discreet", "format": "{levelname} {name}: {message}", "style": "{"},
        "json": {"()": "config.logs.Json"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": env.choice("COUNTERSEAL_LOG_FORMAT", "plain", "json"),
        }
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "counterseal": {"level": env.text("COUNTERSEAL_LOG_LEVEL", "INFO")},
        "django.request": {"level": "ERROR"},  # a 404 or a 409 is an answer, not a warning
        "httpx": {"level": "WARNING"},  # at INFO it writes addresses, which hold orders and keys
        "httpcore": {"level": "WARNING"},
        "uvicorn": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "uvicorn.access": {"handlers": [], "propagate": False},
    },
}
