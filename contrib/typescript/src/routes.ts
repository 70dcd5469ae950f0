// SPDX-License-Identifier: Apache-2.0
/** The routes of a session: services that its commands use with a credential of the host. */
import { Part } from "./part.js";
import type { Route as WireRoute } from "./protocol.js";
import type { CallOptions } from "./server.js";
import type { RoutePolicy } from "./settings.js";

/** A route of the session. env: names of the variables that commands get. live: whether commands can use it now. */
export type Route = WireRoute;

/** The session keeps its routes. "ROUTES" in holt-policy(5) describes their members. */
export class Routes extends Part {
  /**
   * Adds a route: the name of a known one, such as "openai", or an object with all members. Returns null if later commands
   * can use it. If a live session cannot take the route, the result says why; then the route applies from the next start
   * on. Variables with credentials come from the environment in which this program has started `holt serve`.
   */
  async add(route: string | RoutePolicy, options: CallOptions = {}): Promise<string | null> {
    const params = typeof route === "string" ? { known: route } : { route: route as Record<string, unknown> };
    return (await this.request("route.add", params, options)).reason;
  }

  /** Returns the routes, the oldest first. A session at rest is not started. */
  async list(options: CallOptions = {}): Promise<Route[]> {
    return (await this.request("route.list", {}, options)).routes;
  }

  /** Removes a route, and ends its open requests. Throws MissingError. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.request("route.remove", { name }, options);
  }
}
