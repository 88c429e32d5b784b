/**
 * Prints an edit as a unified diff that masks all values in the file.
 *
 * Only an entry that is inserted for the gateway is printed in full. Everything else, including comments, can contain
 * tokens: other entries, and the text that a removal or an undo restores.
 */
import { createTwoFilesPatch } from 'diff'
import { type TextChange, piecesOf } from '../edit/changes.ts'

/** `revealsInserted` prints the inserted text in full, because it is the gateway's entry. */
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
