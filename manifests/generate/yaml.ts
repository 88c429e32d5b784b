/**
 * Writes objects as YAML, and marked values as Helm template expressions.
 *
 * A template is valid YAML before it is rendered too, so that editors, formatters and tests can read it: an expression
 * in a string is quoted, and every other one stands behind a `#`, from which what it renders escapes by a new line.
 */
import { Document, visit } from 'yaml'
import { quotedForKubectl, writeYaml } from '../../schemas/yaml/index.ts'
import type { Json } from './settings/settings.ts'

const header = '# Written by manifests/generate; change the generator, not this file.\n'

/** Objects as one YAML stream, with the note that the file is generated. */
export function yamlFile(objects: readonly object[]): string {
  return header + objects.map(yamlObject).join('---\n')
}

/** The same for a chart: marks become expressions; the whole file is guarded by `condition` when one is given. */
export function templateFile(objects: readonly object[], condition?: string): string {
  const body = objects.map((object) => expressions(yamlObject(object))).join('---\n')
  return header + (condition ? `# {{- if ${condition} }}\n${body}# {{- end }}\n` : body)
}

/** JSON with lists of plain values on one line, as the formatter of this project writes it. */
export function jsonFile(value: object): string {
  const text = JSON.stringify(value, null, 2)
  return `${text.replaceAll(/\[\s+([^[\]{}]*?)\s+\]/g, (_list, items: string) => `[${items.replaceAll(/\s*\n\s*/g, ' ')}]`)}\n`
}

export function yamlValue(value: Json): string {
  return writeYaml(value)
}

function yamlObject(object: object): string {
  // Repeated objects are written out, not aliased.
  const document = new Document(object, { aliasDuplicateObjects: false, ...quotedForKubectl })
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value !== 'string' || !node.value.includes('\uE000')) return
      // An item of its own is written as JSON, whose quotes stay as they are.
      if (!node.value.startsWith('\uE006')) node.type = 'QUOTE_DOUBLE'
    },
  })
  return document.toString({ lineWidth: 0 })
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
        .replace(
          /^( *)- (?:'|")?\uE006([\w.]+) (.*)\uE007(?:'|")?$/,
          (_line, before: string, path: string, item: string) => listItemWhen(before, path, item),
        )
        .replace(/^( *)"?\uE008([\w. ]+)\uE009"?: ""$/, (_line, before: string, paths: string) =>
          mapMembers(before, paths.split(' ')),
        )
        .replace(
          /^( *)"?\uE00A([\w.]+) (\w+)\uE00B"?: (.*)$/,
          (_line, before: string, path: string, key: string, value: string) =>
            `${before}# {{- if not .Values.${path} }}\n${before}${key}: ${value}\n${before}# {{- end }}`,
        )
        .replace(/\uE002([\w.]+)\uE003$/, `# {{- toYaml .Values.$1 | nindent ${indent} }}`)
        .replaceAll(/\uE000([^\uE001]*)\uE001/g, '{{ $1 }}')
    })
    .join('\n')
}

/** One item, on a line of its own, between the lines that decide on it. */
function listItemWhen(before: string, path: string, item: string): string {
  return `${before}# {{- if .Values.${path} }}\n${before}- ${item}\n${before}# {{- end }}`
}

/** Further items at the end of a list; nothing at all when there are none. */
function listItems(before: string, path: string): string {
  return `${before}# {{- with .Values.${path} }}{{- toYaml . | nindent ${before.length} }}{{- end }}`
}

/** Further members of a map. Of several settings the first wins. */
function mapMembers(before: string, paths: readonly string[]): string {
  const values = paths.map((path) => `.Values.${path}`)
  const all = values.length === 1 ? values.join(' ') : `merge (dict) ${values.join(' ')}`
  return `${before}# {{- with ${all} }}{{- toYaml . | nindent ${before.length} }}{{- end }}`
}
