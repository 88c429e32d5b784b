/** Rules for workflows, in a definition (`spec`) or in a virtual server (`spec.config.compositeTools[]`). */
import { below, fieldsOf } from '../../../../schemas/index.ts'
import type { MigrationDraft } from './draft.ts'

/** `tools`: what steps mean by a tool without its backend. */
export function convertWorkflow(draft: MigrationDraft, at: string, tools: ReadonlyMap<string, string>): void {
  askForNestedTemplates(draft, at)
  for (const { parent, key, value, path } of draft.places(`${at}.failureMode`)) {
    delete parent[key]
    if (value === 'abort') draft.note(path, 'renamed', 'is what happens without it')
    else draft.note(path, 'lost', 'set onError.action of the steps instead')
  }
  for (const steps of [`${at}.steps[]`, `${at}.steps[].step`]) {
    convertRetries(draft, steps)
    for (const { parent, key, value, path } of draft.places(`${steps}.tool`)) {
      const name = tools.get(String(value))
      if (name === undefined) continue
      parent[key] = name
      draft.note(path, 'renamed', `${String(value)} is ${name}`)
    }
    for (const field of ['arguments', 'message']) fillUnknownRoots(draft, `${steps}.${field}`)
  }
}

/** There, strings at any depth of arguments are templates; here only where the workflow says so. */
function askForNestedTemplates(draft: MigrationDraft, at: string): void {
  for (const { parent, value, path } of draft.places(`${at}.steps`)) {
    const steps = Array.isArray(value) ? value.map(fieldsOf) : []
    const nested = steps.flatMap((step) => [
      ...Object.values(fieldsOf(step['arguments'])),
      ...Object.values(fieldsOf(fieldsOf(step['step'])['arguments'])),
    ])
    if ('nestedTemplates' in parent || !nested.some((one) => typeof one !== 'string' && hasBraces(one)))
      continue
    parent['nestedTemplates'] = true
    draft.note(path, 'renamed', 'has templates below the first level of arguments: nestedTemplates is set')
  }
}

function hasBraces(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('{{')
  return typeof value === 'object' && value !== null && Object.values(value).some(hasBraces)
}

/** Retries are counted and delayed only where the action is retry. */
function convertRetries(draft: MigrationDraft, steps: string): void {
  for (const field of ['maxRetries', 'retryCount', 'retryDelay']) {
    for (const { parent, key, path } of draft.places(`${steps}.onError.${field}`)) {
      if (parent['action'] === 'retry') continue
      delete parent[key]
      draft.note(path, 'renamed', 'has no effect unless action is retry; it is left out')
    }
  }
  draft.rename(`${steps}.onError.maxRetries`, 'retryCount')
}

/** An action of a template that reads a field of nothing that exists: Go writes this text for it. */
const unknownRoot = /\{\{-?\s*\.(?!(?:params|steps|vars|workflow|forEach)\b)[A-Za-z_][\w.]*\s*-?\}\}/g
const noValue = '<no value>'

function fillUnknownRoots(draft: MigrationDraft, pattern: string): void {
  for (const { parent, key, value, path } of draft.places(pattern)) {
    parent[key] = filled(value, path, draft)
  }
}

function filled(value: unknown, path: string, draft: MigrationDraft): unknown {
  if (typeof value === 'string') {
    const text = value.replaceAll(unknownRoot, noValue)
    if (text !== value)
      draft.note(path, 'differs', `reads a field that does not exist: the text is ${noValue} in both`)
    return text
  }
  if (Array.isArray(value)) return value.map((item, index) => filled(item, below(path, index), draft))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, filled(item, below(path, name), draft)]),
  )
}
