/**
 * The settings of an installation where manifests use them: as their defaults, or as expressions of the chart.
 *
 * The plain manifests contain the defaults. The chart contains a template expression in their place, which stands as a
 * mark until the YAML is written (`yaml.ts`).
 */
import { type Json, settings } from './settings.ts'

/** What is not fixed: `text` belongs into a string, `value` stands alone. All throw for a path that is no setting. */
export interface Values {
  readonly namespace: string
  readonly version: string
  /** Ends the name of a Job, which cannot be changed: differs when the Job would. */
  readonly revision: string
  text(path: string): string
  value(path: string): Json
  /** A list as one text, separated by commas. */
  joined(path: string): string
  /** Items to end a list with. */
  items(path: string): readonly Json[]
  /** An item that is there when the setting is true, or not empty. */
  when(path: string, item: Json): readonly Json[]
  /** Members to end a map with; the first setting that has one wins. */
  members(...paths: string[]): Readonly<Record<string, string>>
  /** Members that are there while the setting is false. */
  unless(path: string, members: Readonly<Record<string, number>>): Readonly<Record<string, number>>
}

/** The defaults themselves. */
export function plainValues(version: string): Values {
  const table = new Map(settings(version).map((one) => [one.path, one.default]))
  const value = (path: string): Json => {
    const found = table.get(path)
    if (found === undefined) throw new Error(`no setting ${path}`)
    return found
  }
  const items = (path: string): readonly Json[] => {
    const found = value(path)
    if (!Array.isArray(found)) throw new Error(`${path} is no list`)
    return found
  }
  const revision = version.replaceAll(/[^a-z0-9]/gi, '-').toLowerCase()
  return {
    namespace: 'gatehouse-system',
    version,
    revision,
    value,
    text(path) {
      const found = value(path)
      if (typeof found !== 'string' && typeof found !== 'boolean') throw new Error(`${path} is no text`)
      return String(found)
    },
    joined: (path) => items(path).map(String).join(','),
    items,
    when: (path, item) => (isFilled(value(path)) ? [item] : []),
    members: (...paths) => Object.assign({}, ...paths.toReversed().map(value)),
    unless: (path, members) => (value(path) === true ? {} : members),
  }
}

function isFilled(value: Json): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value)
}

/** Marks of template expressions, turned into template text after the YAML is written. */
const inlineMark = (expression: string): string => `\uE000${expression}\uE001`
const blockMark = (path: string): string => `\uE002${path}\uE003`
const whenMark = (path: string, item: Json): string => `\uE006${path} ${JSON.stringify(item)}\uE007`
const itemsMark = (path: string): string => `\uE004${path}\uE005`
const membersMark = (paths: readonly string[]): string => `\uE008${paths.join(' ')}\uE009`
const unlessMark = (path: string, key: string): string => `\uE00A${path} ${key}\uE00B`

/** Template expressions in place of the defaults. */
export function chartValues(version: string): Values {
  const table = new Map(settings(version).map((one) => [one.path, one.default]))
  const known = (path: string): string => {
    if (!table.has(path)) throw new Error(`no setting ${path}`)
    return path
  }
  const text = (path: string): string => inlineMark(`.Values.${known(path)}`)
  return {
    namespace: inlineMark('.Release.Namespace'),
    version: inlineMark('.Chart.AppVersion'),
    revision: inlineMark('list .Chart.AppVersion .Values | toJson | sha256sum | trunc 10'),
    text,
    value: (path) => (typeof table.get(path) === 'string' ? text(path) : blockMark(known(path))),
    joined: (path) => inlineMark(`join \`,\` .Values.${known(path)}`),
    items: (path) => [itemsMark(known(path))],
    when: (path, item) => [whenMark(known(path), item)],
    members: (...paths) => ({ [membersMark(paths.map(known))]: '' }),
    unless: (path, members) =>
      Object.fromEntries(
        Object.entries(members).map(([key, value]) => [unlessMark(known(path), key), value]),
      ),
  }
}
