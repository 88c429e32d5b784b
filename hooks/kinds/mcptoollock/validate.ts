/**
 * Checks an MCPToolLock against a rule that its schema cannot express: each definition must contain the name of its
 * item.
 */
import { fieldsOf, isFields, type MCPToolLock, type Violation } from '../../../schemas/index.ts'
import { parseEmbeddedJson } from '../../base/json-bounds.ts'

const lists = { tools: 'name', prompts: 'name', resourceTemplates: 'uriTemplate', skills: 'uri' } as const

export function toolLockViolations({ spec }: MCPToolLock): Violation[] {
  return (Object.keys(lists) as (keyof typeof lists)[]).flatMap((list) =>
    (spec[list] ?? []).flatMap((item, at) => {
      const path = `spec.${list}[${at}]`
      return [item, ...(item.variants ?? [])].flatMap((form, i) => {
        const where = i === 0 ? path : `${path}.variants[${i - 1}]`
        return formViolations(form, { name: item.name, key: lists[list], path: where })
      })
    }),
  )
}

interface Form {
  readonly definition?: unknown
  readonly definitionText?: string | undefined
}

interface Place {
  readonly name: string
  /** Field of a definition that contains the name. */
  readonly key: string
  readonly path: string
}

function formViolations({ definition, definitionText }: Form, { name, key, path }: Place): Violation[] {
  if (definition === undefined && definitionText === undefined) return []
  const field = definitionText === undefined ? 'definition' : 'definitionText'
  const value = definitionText === undefined ? definition : parseEmbeddedJson(definitionText)
  if (!isFields(value)) return [{ path: `${path}.${field}`, message: 'must be a JSON object' }]
  if (fieldsOf(value)[key] === name) return []
  return [{ path: `${path}.${field}`, message: `must have ${key} ${JSON.stringify(name.slice(0, 80))}` }]
}
