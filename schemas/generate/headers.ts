/**
 * Inserts the rules for header names and values into the schema sources, which reference them as `%{…}`. In patterns:
 * `%{header-name}` and `%{header-value}`. In CEL rules: the same placeholders, as quoted regular expressions, and
 * `%{restricted:<use>}`. In messages: `%{restricted:<use>}`, spelled out in words.
 *
 * Throws for an unknown placeholder, because no rule may contain one.
 */
import {
  headerNamePattern,
  headerValuePattern,
  type HeaderUse,
  maxHeaderNameLength,
  restrictedHeaders,
} from '../headers.ts'

const uses: readonly HeaderUse[] = ['injected', 'passedThrough', 'service', 'collector']

type Texts = Readonly<Record<string, string>>

const patterns: Texts = { 'header-name': headerNamePattern, 'header-value': headerValuePattern }

const rules: Texts = {
  'header-name': celText(headerNamePattern.replace(/\+\$$/, `{1,${maxHeaderNameLength}}$`)),
  ...forEachUse((use) => celText(restrictedPattern(use))),
}

const messages: Texts = forEachUse((use) => restrictedHeaders(use).join(', '))

const textsOf: Readonly<Record<string, Texts>> = { pattern: patterns, rule: rules, message: messages }

/** Returns a copy of a schema source with every placeholder replaced. */
export function withHeaderRules<T>(source: T): T {
  return JSON.parse(
    JSON.stringify(source, (key, value: unknown) => (typeof value === 'string' ? filled(key, value) : value)),
  )
}

function filled(key: string, text: string): string {
  const texts = textsOf[key]
  if (!texts) return text
  return text.replaceAll(/%\{([^}]*)\}/g, (whole, name: string) => {
    const found = texts[name]
    if (found === undefined) throw new Error(`${key}: unknown placeholder ${whole}`)
    return found
  })
}

function restrictedPattern(use: HeaderUse): string {
  const names = restrictedHeaders(use).map((name) => name.toLowerCase().replace(/\*$/, '.*'))
  return `(?i)^(${names.join('|')})$`
}

function forEachUse(make: (use: HeaderUse) => string): Texts {
  return Object.fromEntries(uses.map((use) => [`restricted:${use}`, make(use)]))
}

/** Returns a CEL string literal. */
function celText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
