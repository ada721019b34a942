"""Pages. Real URLs: htmx fetches parts of the same ones."""

from __future__ import annotations

from django.urls import path
from django.views.i18n import set_language

from approvals.views import agents, audit, decide, health, home, inbox, me, runs, session, support

app_name = "approvals"
urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("health/", health.index, name="health"),
    path("health/drain/", health.drain, name="drain"),
    path("health/run/<uuid:pk>/retry/", health.retry, name="retry"),
    path("", home.home, name="home"),
    path("login/", session.sign_in, name="login"),
    path("logout/", session.sign_out, name="logout"),
    path("language/", session.language(set_language), name="language"),
    path("inbox/", inbox.index, name="inbox"),
    path("inbox/decision/<uuid:pk>/undo/", decide.undo, name="undo"),
    path("inbox/<uuid:pk>/", inbox.show, name="request"),
    path("inbox/<uuid:pk>/notice/", inbox.notice, name="notice"),
    path("inbox/<uuid:pk>/run/", inbox.run_card, name="request-run"),
    path("inbox/<uuid:pk>/decide/", decide.decide, name="decide"),
    path("inbox/<uuid:pk>/look-up/", decide.look_up, name="look-up"),
    path("inbox/<uuid:pk>/draft/", decide.draft, name="draft"),
    path("support/", support.index, name="support"),
    path("support/new/", support.new, name="new-case"),
    path("support/<uuid:pk>/", support.show, name="case"),
    path("support/<uuid:pk>/messages/", support.post, name="post"),
    path("support/request/<uuid:pk>/withdraw/", support.withdraw, name="withdraw"),
    path("runs/", runs.index, name="runs"),
    path("runs/<uuid:pk>/", runs.show, name="run"),
    path("runs/<uuid:pk>/cancel/", runs.cancel, name="cancel"),
    path("agents/", agents.index, name="agents"),
    path("agents/new/", agents.new, name="new-agent"),
    path("agents/<slug:slug>/", agents.show, name="agent"),
    path("agents/<slug:slug>/pause/", agents.pause, name="pause-agent"),
    path("agents/<slug:slug>/compare/", agents.compare, name="compare-agent"),
    path("agents/<slug:slug>/v<int:number>/", agents.version, name="agent-version"),
    path("agents/<slug:slug>/v<int:number>/spec.json", agents.export, name="export-version"),
    path("agents/<slug:slug>/v<int:number>/edit/", agents.begin, name="begin-draft"),
    path("agents/<slug:slug>/draft/", agents.draft, name="agent-draft"),
    path("agents/<slug:slug>/draft/spec.json", agents.export, name="export-draft"),
    path("agents/<slug:slug>/draft/add/", agents.add, name="draft-add"),
    path("agents/<slug:slug>/draft/move/", agents.move, name="draft-move"),
    path("agents/<slug:slug>/draft/remove/", agents.remove, name="draft-remove"),
    path("agents/<slug:slug>/draft/options/", agents.options, name="draft-options"),
    path("agents/<slug:slug>/draft/undo/", agents.undo, name="draft-undo"),
    path("agents/<slug:slug>/draft/import/", agents.import_draft, name="draft-import"),
    path("agents/<slug:slug>/draft/discard/", agents.discard, name="draft-discard"),
    path("agents/<slug:slug>/draft/publish/", agents.publish, name="draft-publish"),
    path("audit/", audit.index, name="audit"),
    path("audit/<int:pk>/", audit.show, name="audit-event"),
    path("me/", me.show, name="me"),
    path("me/tokens/", me.create_token, name="create-token"),
    path("me/tokens/<uuid:pk>/revoke/", me.revoke_token, name="revoke-token"),
]
