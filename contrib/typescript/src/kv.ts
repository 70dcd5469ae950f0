// SPDX-License-Identifier: Apache-2.0
/** The key-value store of a session. Keys are text; values are text or bytes. */
import { NoKeyError, UsageError } from "./errors.js";
import { type Content, Part, bytesOf } from "./part.js";
import type { CallOptions } from "./server.js";

/** A key has 1 to 1024 bytes. A value must fit in a message of 1 MiB, in which bytes take a third more room than text. */
export class Kv extends Part {
  /** Returns a value as text, or undefined if the key is missing. Throws UsageError if the value is not UTF-8. */
  async get(key: string, options: CallOptions = {}): Promise<string | undefined> {
    const bytes = await this.getBytes(key, options);
    if (!bytes) return undefined;
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw new UsageError(`the value of the key ${JSON.stringify(key)} is not UTF-8`, { hint: "Read it by kv.getBytes()." });
    }
  }

  /** Returns a value as bytes, or undefined if the key is missing. */
  async getBytes(key: string, options: CallOptions = {}): Promise<Buffer | undefined> {
    try {
      return Buffer.from((await this.request("kv.get", { key, base64: true }, options)).value, "base64");
    } catch (error) {
      if (error instanceof NoKeyError) return undefined;
      throw error;
    }
  }

  /** Sets a key to text or bytes. An existing value is replaced. */
  async set(key: string, value: Content, options: CallOptions = {}): Promise<void> {
    const params = typeof value === "string" ? { key, value } : { key, base64: bytesOf(value).toString("base64") };
    await this.request("kv.set", params, options);
  }

  /** Removes a key. Returns whether it existed. */
  async delete(key: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.request("kv.delete", { key }, options)).deleted;
  }

  /** Returns all keys that start with a prefix, in byte order. */
  async keys(prefix = "", options: CallOptions = {}): Promise<string[]> {
    const found: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await this.request("kv.keys", { prefix: prefix || undefined, after, limit: 1000 }, options);
      found.push(...page.keys);
      if (page.next === null) return found;
      after = page.next;
    }
  }
}
