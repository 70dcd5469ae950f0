// SPDX-License-Identifier: Apache-2.0
/** Limits how many things happen at once. Others wait in the order in which they came. */
import { onAbort } from "./signals.js";

export class Slots {
  #left: number;
  readonly #count: number;
  readonly #queue = new Set<() => void>();

  constructor(count: number) {
    this.#left = count;
    this.#count = count;
  }

  /** Whether all slots are free. */
  get idle(): boolean {
    return this.#left === this.#count;
  }

  /** Runs `work` in a free slot. Rejects with the reason of the signal if it is aborted before. */
  async run<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#left > 0) this.#left--;
    else await this.#turn(signal);
    try {
      return await work();
    } finally {
      const [next] = this.#queue;
      if (next) {
        this.#queue.delete(next);
        next(); // it takes over this slot
      } else this.#left++;
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        stop();
        resolve();
      };
      const stop = onAbort(signal, (reason) => {
        this.#queue.delete(begin);
        reject(reason);
      });
      this.#queue.add(begin);
    });
  }
}
