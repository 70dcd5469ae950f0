// SPDX-License-Identifier: Apache-2.0
/** The common base of a sandbox and its parts: its server, and the name of its session. */
import type { Json } from "./connection.js";
import { UsageError } from "./errors.js";
import { fromWire, toWire } from "./names.js";
import type { Methods } from "./protocol.js";
import type { CallOptions, Server } from "./server.js";

/** Maximum bytes of a file in one message. In base64, these are half of the maximum of a request. */
export const PIECE = 384 * 1024;

/** Text, which is written as UTF-8, or bytes. */
export type Content = string | Uint8Array;

/** Returns the bytes of a content. Throws UsageError. */
export function bytesOf(content: Content): Buffer {
  if (typeof content === "string") {
    if (!content.isWellFormed()) throw new UsageError("the text has half of a surrogate pair, which is no character");
    return Buffer.from(content, "utf8");
  }
  if (content instanceof Uint8Array) return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  throw new UsageError(`content must be text or a Uint8Array, not ${content === null ? "null" : typeof content}`, {
    hint: "JSON.stringify() turns other values into text.",
  });
}

type Given<M extends keyof Methods> = Omit<Methods[M]["params"], "session">;

/** @internal */
export abstract class Part {
  protected readonly server: Server;
  protected readonly session: string;

  constructor(server: Server, session: string) {
    // Not enumerable, so that console.log() of a part stays short.
    Object.defineProperty(this, "server", { value: server });
    Object.defineProperty(this, "session", { value: session });
    this.server = server;
    this.session = session;
  }

  /** Sends a request about the session, and returns its result. */
  protected async request<M extends keyof Methods>(method: M, params: Given<M>, options: CallOptions & { urgent?: boolean } = {}): Promise<Methods[M]["result"]> {
    return fromWire(await this.ask(method, toWire(params), options)) as Methods[M]["result"];
  }

  /** The same with the names of the protocol. */
  protected ask(method: keyof Methods, params: Json, options: CallOptions & { urgent?: boolean; then?: (result: Json) => void } = {}): Promise<Json> {
    return this.server.ask(method, { session: this.session, ...params }, options);
  }

  /** Sends a request and ignores its outcome. */
  protected tell(method: keyof Methods, params: Json): Promise<void> {
    return this.server.tell(method, { session: this.session, ...params });
  }
}
