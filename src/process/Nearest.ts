/** What was probably meant by a word that is mistyped. */

/** How many letters have to be added, dropped or replaced to make one word of another. */
const distance = (one: string, other: string) => {
  const row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let line = 0; line < one.length; line++) {
    let diagonal = line
    row[0] = line + 1
    for (let column = 0; column < other.length; column++) {
      const above = row[column + 1] ?? 0
      const replaced = diagonal + (one[line] === other[column] ? 0 : 1)
      row[column + 1] = Math.min(above + 1, (row[column] ?? 0) + 1, replaced)
      diagonal = above
    }
  }
  return row[other.length] ?? 0
}

/** The known word that is nearest, if it is at most two letters away. */
export const nearest = (word: string, known: ReadonlyArray<string>): string | undefined => {
  const near = known
    .filter((each) => Math.abs(each.length - word.length) <= 2)
    .map((each) => ({ each, away: distance(word, each) }))
    .filter(({ away }) => away <= 2)
  return near.toSorted((one, other) => one.away - other.away)[0]?.each
}
