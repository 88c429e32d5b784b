/**
 * What is written down of the settings: `values.yaml`, its schema, and the table in the chart's README.
 */
import { sectionRules, type Setting } from '../settings/settings.ts'
import type { Json } from '../settings/settings.ts'

/** Section and name; a setting that stands alone has no section. */
function split({ path }: Setting): readonly [section: string, name: string] {
  const [head = '', key] = path.split('.')
  return key === undefined ? ['', head] : [head, key]
}

/** `values.yaml`, with each comment above its setting. */
export function valuesFile(settings: readonly Setting[], stringify: (value: Json) => string): string {
  const lines: string[] = ['# Settings of the chart, with their defaults. Written by manifests/generate.']
  let last: string | undefined
  for (const setting of settings) {
    const [section, name] = split(setting)
    if (section !== last || section === '') lines.push('')
    if (section !== last && section !== '') lines.push(`${section}:`)
    last = section
    const indent = section === '' ? '' : '  '
    lines.push(`${indent}# ${setting.comment}`)
    const body = stringify({ [name]: setting.default }).trimEnd()
    lines.push(...body.split('\n').map((line) => indent + line))
  }
  return `${lines.join('\n')}\n`
}

/** `values.schema.json`: a misspelt or misplaced setting is an error at install, not a surprise. */
export function valuesSchema(settings: readonly Setting[]): object {
  const object = (properties: object) => ({ type: 'object', additionalProperties: false, properties })
  const properties: Record<string, object> = {}
  for (const [section, list] of Map.groupBy(settings, (setting) => split(setting)[0])) {
    const members = Object.fromEntries(list.map((setting) => [split(setting)[1], schemaOf(setting)]))
    if (section === '') Object.assign(properties, members)
    else properties[section] = { ...object(members), ...sectionRules[section] }
  }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    // Helm adds a section for the chart within the chart.
    ...object({
      ...properties,
      global: { type: 'object' },
      'metacontroller-definitions': { type: 'object' },
    }),
  }
}

function schemaOf({ default: value, comment: description, oneOf, rules }: Setting): object {
  if (oneOf) return { enum: oneOf, description }
  if (typeof value === 'number') return { type: 'integer', minimum: 1, description }
  return { type: Array.isArray(value) ? 'array' : typeof value, ...rules, description }
}

/** A row for each setting. What does not fit into a cell stands in values.yaml. */
export function valuesTable(settings: readonly Setting[]): string {
  const cell = (value: Json): string => {
    const text = JSON.stringify(value)
    return text.length > 64 ? 'see `values.yaml`' : `\`${text}\``
  }
  const rows = settings.map(
    ({ path, default: value, comment }) => `| \`${path}\` | ${cell(value)} | ${comment} |`,
  )
  return ['| Value | Default | Meaning |', '|---|---|---|', ...rows].join('\n')
}
