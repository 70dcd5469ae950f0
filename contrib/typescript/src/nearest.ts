// SPDX-License-Identifier: Apache-2.0
/** Suggests the name that was meant. */

/** Longer names are not compared, because nobody types them. */
const LENGTH_MAX = 40;

/** The number of inserted, removed, changed or swapped letters between two words. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}

/** @internal Returns "; did you mean NAME?" for the nearest of the names, or "" if none is near. */
export function didYouMean(word: string, names: Iterable<string>): string {
  let best = "";
  let least = word.length < 6 ? 1 : Math.floor(word.length / 3);
  for (const name of word.length > LENGTH_MAX ? [] : names) {
    const far = distance(word.toLowerCase(), name.toLowerCase());
    if (far > least || (best && far === least)) continue;
    [best, least] = [name, far];
  }
  return best && `; did you mean ${best}?`;
}
