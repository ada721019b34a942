"""Pages of lists that grow at the front: newest first, continued after the last row seen."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from ninja import Query

from approvals.errors import Invalid

Limit = Annotated[int, Query(50, ge=1, le=200)]


def newest_first[M: Model](rows: QuerySet[M], after: UUID | None, limit: int) -> list[M]:
    """One row more than `limit`, so that the caller knows whether there is a next page."""
    if after is not None:
        last = rows.model._default_manager.filter(pk=after).values_list("created_at", flat=True).first()
        if last is None:
            raise Invalid({"after": "There is no such row: send the `next` of the page before."})
        rows = rows.filter(Q(created_at__lt=last) | Q(created_at=last, pk__lt=after))
    return list(rows.order_by("-created_at", "-pk")[: limit + 1])
