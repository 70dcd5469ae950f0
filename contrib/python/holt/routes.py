# SPDX-License-Identifier: Apache-2.0
"""The routes of a session: services that its commands use with a credential of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ._face import Part
from ._operations import AsyncFace, Steps, SyncFace, operation
from .errors import UsageError


@dataclass(frozen=True)
class Route:
    """A route of the session.

    env            names of the variables that commands get
    live           whether commands can use it now; a session at rest has no live routes
    terminate_tls  hosts whose TLS holt-gateway terminates
    """

    name: str
    upstream: str
    env: Tuple[str, ...]
    live: bool
    terminate_tls: Tuple[str, ...] = ()


class RoutesApi(Part):
    """The session keeps its routes. "ROUTES" in holt-policy(5) describes their members."""

    @operation
    def add(self, route: Union[str, Mapping[str, Any]], /, **members: Any) -> "Steps[Optional[str]]":
        """Adds a route, and returns None if later commands can use it.

            box.routes.add("openai")
            box.routes.add("acme", upstream="https://api.acme.example", header={"authorization": "Bearer {env:ACME_KEY}"},
                           env={"ACME_URL": "{url}", "ACME_TOKEN": "{token}"})

        route is the name of a known route, or a dict with all members. With members, it is the name of a route of your own.
        If a live session cannot take the route, the result says why; then the route applies from the next start on. A
        variable such as ACME_KEY comes from the environment in which this program has started holt serve. Raises
        ExistsError.
        """
        if isinstance(route, str) and members:
            route = {"name": route, **members}
        elif members:
            raise UsageError("a dict has all members of the route already")
        params: Dict[str, Any] = {"known": route} if isinstance(route, str) else {"route": dict(route)}
        return (yield self._ask("route.add", params)).get("reason")  # type: ignore[no-any-return]

    @operation
    def list(self) -> "Steps[List[Route]]":
        """Returns the routes, the oldest first. A session at rest is not started."""
        answer = yield self._ask("route.list", {})
        return [Route(each["name"], each["upstream"], tuple(each["env"]), each["live"], tuple(each["terminate_tls"]))
                for each in answer["routes"]]

    @operation
    def remove(self, name: str) -> "Steps[Optional[str]]":
        """Removes a route, ends its open requests, and returns None.

        If a live session still has the route, the result says why; then the removal applies from the next start on. Raises
        MissingError.
        """
        return (yield self._ask("route.remove", {"name": name})).get("reason")  # type: ignore[no-any-return]


class Routes(RoutesApi, SyncFace):
    """Sandbox.routes"""


class AsyncRoutes(RoutesApi, AsyncFace):
    """AsyncSandbox.routes"""
