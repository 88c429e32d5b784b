/**
 * Writes YAML that all readers interpret the same way. Quotes strings that kubectl, which follows YAML 1.1, would read
 * as another type (`yes`, `on`, `0777`).
 */
import { Document, Scalar, Schema, type ScalarTag, stringify, visit } from 'yaml'
import { hiddenInText } from '../hidden-characters.ts'

const radixes: Readonly<Record<string, number>> = { o: 8, X: 16, B: 2 }

/** Matches `0o17`, `0X1F` and `0B1`, which kubectl also reads as integers. */
export const otherIntegers: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0(?:o[0-7]+|X[\da-fA-F]+|B[01]+)$/,
  resolve(text) {
    const [, sign, letter = '', digits = ''] = /^([-+]?)0(.)(.+)$/.exec(text) ?? []
    return (sign === '-' ? -1 : 1) * Number.parseInt(digits, radixes[letter])
  },
}

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
