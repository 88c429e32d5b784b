/**
 * Prints an edit as a unified diff that masks all values in the file.
 *
 * Only an entry that is inserted for the gateway is printed in full. Everything else, including comments, can contain
 * tokens: other entries, and the text that a removal or an undo restores.
 */
import { createTwoFilesPatch } from 'diff'
import type { ClientRow } from '../catalog/client-row.ts'
import { type TextChange, piecesOf } from '../edit/changes.ts'
import { jsonLineBreaks } from './json-layout.ts'

interface DiffOptions {
  readonly format: ClientRow['format']
  /** Prints the inserted text in full, because it is the gateway's entry. */
  readonly revealsInserted: boolean
}

/** Breaks JSON lines with several members, because the mask of a whole line would hide the change. */
export function maskedDiff(
  text: string,
  changes: readonly TextChange[],
  file: string,
  { format, revealsInserted }: DiffOptions,
): string {
  const pieces = piecesOf(text, changes)
  const side = (left: 'removed' | 'inserted') => {
    const own = pieces.filter(({ origin }) => origin !== left)
    const whole = own.map((piece) => piece.text).join('')
    const breaks: ReadonlyMap<number, string> = format === 'json' ? jsonLineBreaks(whole) : new Map()
    let offset = 0
    return own
      .map(({ text: piece, origin }) => {
        const shown = withBreaks(piece, offset, breaks)
        offset += piece.length
        return origin === 'inserted' && revealsInserted ? shown : shown.replaceAll(/[^\n]+/g, maskLine)
      })
      .join('')
  }
  return createTwoFilesPatch(file, file, side('inserted'), side('removed'), '', '', { context: 2 })
    .replace(/^Index:.*\n=+\n/, '')
    .replaceAll(/\t?\r?$/gm, '')
}

/** `offset` is the position of the piece in the text that the breaks were computed for. */
function withBreaks(piece: string, offset: number, breaks: ReadonlyMap<number, string>): string {
  let shown = ''
  let from = 0
  for (const [at, inserted] of breaks) {
    if (at < offset || at >= offset + piece.length) continue
    shown += piece.slice(from, at - offset) + inserted
    from = at - offset
  }
  return shown + piece.slice(from)
}

/** Matches names in JSON, YAML and TOML. Does not match base64 padding at the end of a line within longer text. */
const names = /^[\s{,]*(?:"[\w.@/ -]*"\s*:|[\w.-]+:(?=\s|$)|[\w.-]+\s*=(?=\s*[^\s=]))\s*/

/** Keeps a line's indent, name and brackets, and replaces the rest with `…`. */
function maskLine(line: string): string {
  if (/^[\s{}[\],]*$/.test(line)) return line
  const header = /^\s*\[{1,2}[\w.-]+\]{1,2}/.exec(line)
  if (header) return header[0] + maskRest(line.slice(header[0].length))
  const [name = ''] = names.exec(line) ?? []
  if (name) return name + maskRest(line.slice(name.length))
  return (/^\s*/.exec(line)?.[0] ?? '') + maskRest(line.trimStart())
}

function maskRest(rest: string): string {
  if (/^[\s{}[\],]*$/.test(rest)) return rest
  const opening = /^[{[]/.exec(rest)?.[0] ?? ''
  const closing = /(?<![}\]])[}\]]*,?$/.exec(rest.trimEnd())?.[0] ?? ''
  return `${opening}…${closing}`
}
