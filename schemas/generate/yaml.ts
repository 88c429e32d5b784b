/**
 * Writes a CRD as compact YAML, because indentation makes up half the file in a deep schema. Writes a flat value on one
 * line if it fits. Does not indent lists below their keys, as in Kubernetes' own files. The content is unchanged.
 */
import { Document, isScalar, isSeq, visit } from 'yaml'
import { quotedForKubectl } from '../yaml/index.ts'

/** Maximum width of a one-line value, without indentation. */
const lineChars = 160

/** Returns compact YAML. Writes repeated objects out instead of using aliases. */
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
