/**
 * What an edit would change, as a unified diff that shows nothing of the file but names and punctuation.
 *
 * Only an entry of the gateway that is inserted is shown as it is. Everything else may hold tokens, comments as well: the
 * neighbours, and what a removal or an undo puts back.
 */
import { createTwoFilesPatch } from 'diff'
import { type TextChange, piecesOf } from '../edit/changes.ts'

/** `revealsInserted`: prints the inserted text, which is the gateway's entry. */
export function maskedDiff(
  text: string,
  changes: readonly TextChange[],
  file: string,
  { revealsInserted }: { readonly revealsInserted: boolean },
): string {
  const pieces = piecesOf(text, changes).map(({ text: piece, origin }) => ({
    origin,
    text: origin === 'inserted' && revealsInserted ? piece : piece.replaceAll(/[^\n]+/g, maskLine),
  }))
  const side = (left: 'removed' | 'inserted') =>
    pieces
      .filter(({ origin }) => origin !== left)
      .map((piece) => piece.text)
      .join('')
  return createTwoFilesPatch(file, file, side('inserted'), side('removed'), '', '', { context: 2 })
    .replace(/^Index:.*\n=+\n/, '')
    .replaceAll(/\t?\r?$/gm, '')
}

/** JSON, YAML and TOML. A line of a longer text that ends with the padding of base64 has no name. */
const names = /^[\s{,]*(?:"[\w.@/ -]*"\s*:|[\w.-]+:(?=\s|$)|[\w.-]+\s*=(?=\s*[^\s=]))\s*/

/** A piece of one line: its indent, its name and its brackets; `…` for the rest. */
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
