/**
 * Public API for YAML: the strict reader (`read.ts`), and the writer.
 *
 * The writer's output has the same meaning for all readers. It quotes strings that kubectl, which follows YAML 1.1,
 * would read as another type (`yes`, `on`, `0777`).
 */
import { Document, Scalar, Schema, stringify, visit } from 'yaml'
import { hiddenInText } from '../hidden-characters.ts'
import { otherIntegers } from './read.ts'

export { readYaml, readYamlTree } from './read.ts'

/** Options for documents that callers build node by node. */
export const quotedForKubectl = { compat: [...new Schema({ schema: 'yaml-1.1' }).tags, otherIntegers] }

/** Returns one document with a trailing newline. Hidden characters, which a terminal may interpret, are escaped. */
export function writeYaml(value: unknown): string {
  const text = stringify(value, { lineWidth: 0, ...quotedForKubectl })
  return hasHiddenCharacters(text) ? withEscapes(new Document(value, quotedForKubectl)) : text
}

function hasHiddenCharacters(text: string): boolean {
  return text.search(hiddenInText) >= 0
}

/** Double-quotes every string with a hidden character, because YAML supports escapes only in double-quoted scalars. */
function withEscapes(document: Document): string {
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && hasHiddenCharacters(node.value)) node.type = Scalar.QUOTE_DOUBLE
    },
  })
  // Prevents folding, because the library loses spaces at the start of a line when it folds a quoted string.
  const text = document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Infinity })
  return text.replaceAll(
    hiddenInText,
    (character) => `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`,
  )
}
