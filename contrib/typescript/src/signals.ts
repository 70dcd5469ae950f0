// SPDX-License-Identifier: Apache-2.0
/**
 * Listens to AbortSignals. A program may pass one signal to a thousand calls, and Node warns of a leak if more than ten
 * listeners are added. So each signal has one listener here, which calls all others.
 */

type Act = (reason: unknown) => void;

const all = new WeakMap<AbortSignal, { acts: Set<Act>; listener: () => void }>();

function listen(signal: AbortSignal): Set<Act> {
  const acts = new Set<Act>();
  const listener = (): void => {
    all.delete(signal);
    for (const act of acts) act(signal.reason);
  };
  all.set(signal, { acts, listener });
  signal.addEventListener("abort", listener, { once: true });
  return acts;
}

/** Calls `act` when the signal is aborted. Returns a function that stops this. */
export function onAbort(signal: AbortSignal | undefined, act: Act): () => void {
  if (!signal) return () => {};
  const mine: Act = (reason) => act(reason); // one function may be added twice
  (all.get(signal)?.acts ?? listen(signal)).add(mine);
  return () => {
    const known = all.get(signal);
    if (!known?.acts.delete(mine) || known.acts.size) return;
    all.delete(signal);
    signal.removeEventListener("abort", known.listener);
  };
}

/** Returns a promise with the same outcome, which is rejected earlier if the signal is aborted. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  promise.catch(() => {}); // nobody may be left to notice its failure
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = onAbort(signal, reject);
    promise.then(resolve, reject).finally(stop);
  });
}
