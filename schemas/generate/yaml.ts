/**
 * Writes a CRD as YAML in few bytes: in a deep schema half of the file is indentation. What holds nothing deeper than
 * lists of plain values stands on one line where it fits, and lists are not indented below their key, as in Kubernetes'
 * own files. It means the same, so nothing of the schema is left out.
 */
import { Document, isScalar, isSeq, visit } from 'yaml'
import { quotedForKubectl } from '../yaml/index.ts'

/** Width of what is written on one line, without its indentation. */
const lineChars = 160

/** Repeated objects are written out, not aliased. */
export function compactYaml(object: object): string {
  const document = new Document(object, { aliasDuplicateObjects: false, ...quotedForKubectl })
  visit(document, {
    Seq(_key, node) {
      node.flow = node.items.every(isScalar) && fits(node)
    },
    Map(_key, node) {
      node.flow = node.items.every(({ value }) => isPlain(value)) && fits(node)
    },
  })
  return document.toString({
    lineWidth: 0,
    indentSeq: false,
    flowCollectionPadding: false,
    singleQuote: true,
  })
}

function isPlain(value: unknown): boolean {
  return isScalar(value) || (isSeq(value) && value.items.every(isScalar))
}

function fits(node: unknown): boolean {
  return JSON.stringify(node).length <= lineChars
}
