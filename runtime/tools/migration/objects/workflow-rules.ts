/** Rules for workflows, in a definition (`spec`) or in a virtual server (`spec.config.compositeTools[]`). */
import { below, fieldsOf } from '../../../../schemas/index.ts'
import type { MigrationDraft } from './draft.ts'

/** `tools` maps tool names without a backend to full names. */
export function convertWorkflow(draft: MigrationDraft, at: string, tools: ReadonlyMap<string, string>): void {
  enableNestedTemplates(draft, at)
  for (const { parent, key, value, path } of draft.fieldsAt(`${at}.failureMode`)) {
    delete parent[key]
    if (value === 'abort') draft.note(path, 'renamed', 'is the default')
    else draft.note(path, 'lost', 'set onError.action in the steps instead')
  }
  for (const steps of [`${at}.steps[]`, `${at}.steps[].step`]) {
    convertRetries(draft, steps)
    for (const { parent, key, value, path } of draft.fieldsAt(`${steps}.tool`)) {
      const name = tools.get(String(value))
      if (name === undefined) continue
      parent[key] = name
      draft.note(path, 'renamed', `${String(value)} is now ${name}`)
    }
    for (const field of ['arguments', 'message']) fillUnknownRoots(draft, `${steps}.${field}`)
  }
}

/**
 * In ToolHive, strings at any depth of arguments are templates. In Gatehouse, the workflow must enable this behavior.
 */
function enableNestedTemplates(draft: MigrationDraft, at: string): void {
  for (const { parent, value, path } of draft.fieldsAt(`${at}.steps`)) {
    const steps = Array.isArray(value) ? value.map(fieldsOf) : []
    const nested = steps.flatMap((step) => [
      ...Object.values(fieldsOf(step['arguments'])),
      ...Object.values(fieldsOf(fieldsOf(step['step'])['arguments'])),
    ])
    if (
      'nestedTemplates' in parent ||
      !nested.some((argument) => typeof argument !== 'string' && hasBraces(argument))
    )
      continue
    parent['nestedTemplates'] = true
    draft.note(path, 'renamed', 'has templates below the first level of arguments, so nestedTemplates is set')
  }
}

function hasBraces(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('{{')
  return typeof value === 'object' && value !== null && Object.values(value).some(hasBraces)
}

/** Removes retry settings unless the action is retry, because they have no effect. */
function convertRetries(draft: MigrationDraft, steps: string): void {
  for (const field of ['maxRetries', 'retryCount', 'retryDelay']) {
    for (const { parent, key, path } of draft.fieldsAt(`${steps}.onError.${field}`)) {
      if (parent['action'] === 'retry') continue
      delete parent[key]
      draft.note(path, 'renamed', 'has no effect unless action is retry, and was removed')
    }
  }
  draft.rename(`${steps}.onError.maxRetries`, 'retryCount')
}

/** Template actions that read a field of an unknown root. Go replaces these actions with `<no value>`. */
const unknownRoot = /\{\{-?\s*\.(?!(?:params|steps|vars|workflow|forEach)\b)[A-Za-z_][\w.]*\s*-?\}\}/g
const noValue = '<no value>'

function fillUnknownRoots(draft: MigrationDraft, pattern: string): void {
  for (const { parent, key, value, path } of draft.fieldsAt(pattern)) {
    parent[key] = fillValueAt(value, path, draft)
  }
}

function fillValueAt(value: unknown, path: string, draft: MigrationDraft): unknown {
  if (typeof value === 'string') {
    const text = value.replaceAll(unknownRoot, noValue)
    if (text !== value)
      draft.note(
        path,
        'differs',
        `reads a field that does not exist: the result is ${noValue} in both products`,
      )
    return text
  }
  if (Array.isArray(value)) return value.map((item, index) => fillValueAt(item, below(path, index), draft))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, fillValueAt(item, below(path, name), draft)]),
  )
}
