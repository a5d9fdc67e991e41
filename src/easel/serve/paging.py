"""The query parameters of every collection."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from easel.declare.page import PageRequest, parse_filter
from easel.store.paging import MAX_LIMIT


async def page_request(
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="At most so many items")] = 50,
    cursor: Annotated[
        str | None, Query(max_length=2000, description="`next_cursor` of the page before")
    ] = None,
    sort: Annotated[str, Query(max_length=64, description="A field, or -field for descending")] = "",
    filter: Annotated[  # noqa: A002 - the parameter's public name
        list[str] | None,
        Query(
            max_length=20,
            description="Conditions that all hold: field:operator:value",
            examples=[["name:prefix:a"]],
        ),
    ] = None,
) -> PageRequest:
    return PageRequest(limit, cursor, sort, tuple(parse_filter(text) for text in filter or []))


Paging = Annotated[PageRequest, Depends(page_request)]
