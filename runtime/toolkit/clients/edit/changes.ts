/** Text edits as a list of replacements. All other bytes stay unchanged, and the edit can be reverted exactly. */

/** Replaces `removed` at `offset` with `inserted`. */
export interface TextChange {
  readonly offset: number
  readonly removed: string
  readonly inserted: string
}

export function insertion(offset: number, inserted: string): TextChange {
  return { offset, removed: '', inserted }
}

export function replacement(text: string, start: number, end: number, inserted: string): TextChange {
  return { offset: start, removed: text.slice(start, end), inserted }
}

/** A piece of the original or the changed text. */
export interface DiffPiece {
  readonly text: string
  readonly origin: 'unchanged' | 'removed' | 'inserted'
}

/**
 * Returns the pieces of the original and the changed text in order. Throws RangeError when a change does not match the
 * text.
 */
export function piecesOf(text: string, changes: readonly TextChange[]): readonly DiffPiece[] {
  const pieces: DiffPiece[] = []
  let at = 0
  for (const { offset, removed, inserted } of inOrder(changes)) {
    if (offset < at || text.slice(offset, offset + removed.length) !== removed) {
      throw new RangeError('a change does not apply to the text')
    }
    pieces.push({ text: text.slice(at, offset), origin: 'unchanged' })
    if (removed) pieces.push({ text: removed, origin: 'removed' })
    if (inserted) pieces.push({ text: inserted, origin: 'inserted' })
    at = offset + removed.length
  }
  return [...pieces, { text: text.slice(at), origin: 'unchanged' }]
}

export function applyChanges(text: string, changes: readonly TextChange[]): string {
  return piecesOf(text, changes)
    .filter(({ origin }) => origin !== 'removed')
    .map((piece) => piece.text)
    .join('')
}

/** Returns the changes that restore the original text. */
export function invertChanges(changes: readonly TextChange[]): readonly TextChange[] {
  let shift = 0
  return inOrder(changes).map(({ offset, removed, inserted }) => {
    const change = { offset: offset + shift, removed: inserted, inserted: removed }
    shift += inserted.length - removed.length
    return change
  })
}

function inOrder(changes: readonly TextChange[]): readonly TextChange[] {
  return changes.toSorted((a, b) => a.offset - b.offset)
}
