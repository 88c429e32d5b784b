/**
 * Writes objects as YAML, and marked values as Helm template expressions.
 *
 * A string with an expression in it is single-quoted, so that whatever the template renders stays a string.
 */
import { Document, type Scalar, stringify, visit } from 'yaml'
import type { Json } from './values.ts'

const header = '# Written by manifests/generate; change the generator, not this file.\n'

/** Objects as one YAML stream, with the note that the file is generated. */
export function yamlFile(objects: readonly object[]): string {
  return header + objects.map(yamlObject).join('---\n')
}

/** The same for a chart: marks become expressions; the whole file is guarded by `condition` when one is given. */
export function templateFile(objects: readonly object[], condition?: string): string {
  const body = objects.map((object) => expressions(yamlObject(object))).join('---\n')
  return header + (condition ? `{{- if ${condition} }}\n${body}{{- end }}\n` : body)
}

export function yamlValue(value: Json): string {
  return stringify(value, { lineWidth: 0 })
}

function yamlObject(object: object): string {
  // Marks are looked for in the finished tree; repeated objects are written out, not aliased.
  const document = new Document(object, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_key, node) {
      if (isMarked(node)) node.type = isWhole(node) ? 'PLAIN' : 'QUOTE_SINGLE'
    },
  })
  return document.toString({ lineWidth: 0 })
}

function isMarked(node: Scalar): boolean {
  return typeof node.value === 'string' && node.value.includes('\uE000')
}

/** True for an expression that gives a number or a boolean by itself. */
function isWhole(node: Scalar): boolean {
  return /^\uE000\.Values\.[\w.]*(replicas|Seconds|enabled)\uE001$/.test(String(node.value))
}

function expressions(text: string): string {
  return text
    .split('\n')
    .map((line) => {
      const indent = (line.match(/^[ -]*/)?.[0].length ?? 0) + 2
      return line
        .replace(/^( *)- \uE004([\w.]+)\uE005$/, (_line, before: string, path: string) =>
          listItems(before, path),
        )
        .replaceAll(/\uE002([\w.]+)\uE003/g, `{{- toYaml .Values.$1 | nindent ${indent} }}`)
        .replaceAll(/\uE000([^\uE001]*)\uE001/g, '{{ $1 }}')
    })
    .join('\n')
}

/** Further items at the end of a list; nothing at all when there are none. */
function listItems(before: string, path: string): string {
  return `${before}{{- with .Values.${path} }}{{- toYaml . | nindent ${before.length} }}{{- end }}`
}
