/**
 * Builds an HTTP request from a plan and the arguments of a call. The request contains no address and no credentials:
 * the calling code joins the path to the configured base URL.
 */
import { GatehouseError } from '../../errors.ts'
import { type Fields, own } from '../../validation/fields.ts'
import type { RequestInput, RequestPlan } from '../model.ts'
import { type EncodedPair, headerText, invalidArgument, pathText, queryPairs } from './serialize.ts'

export interface BuiltRequest {
  readonly method: string
  /** Encoded; starts with a slash. */
  readonly path: string
  /** Encoded, without the question mark; '' without a query. */
  readonly query: string
  /** Without credentials. Contains `accept` and `content-type` when the plan defines them. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body?: string
}

/** Throws INVALID_PARAMS for missing, unknown or unsafe arguments. */
export function buildRequest(plan: RequestPlan, args: Fields): BuiltRequest {
  refuseUnknown(plan, args)
  const given = plan.inputs.flatMap((input) => {
    const value = valueOf(input, args)
    return value === undefined ? [] : [[input, value] as const]
  })
  const inLocation = (location: RequestInput['in']) => given.filter(([input]) => input.in === location)
  const body = bodyText(plan, inLocation('wholeBody')[0]?.[1], inLocation('body'))
  return {
    method: plan.method,
    path: pathOf(plan, inLocation('path')),
    query: joined(pairsOf(plan, 'query', inLocation('query'))),
    headers: [
      ...(plan.response.accept === undefined ? [] : [['accept', plan.response.accept] as const]),
      ...(body === undefined || !plan.body ? [] : [['content-type', plan.body.mediaType] as const]),
      ...inLocation('header').map(([input, value]) => [input.name, headerText(input, value)] as const),
    ],
    ...(body !== undefined && { body }),
  }
}

/** Parameter with which some servers replace the method of a request. */
const methodParameter = '_method'

type Given = readonly (readonly [RequestInput, unknown])[]

/** Rejects unknown arguments, because a misspelled filter would otherwise select everything. */
function refuseUnknown({ inputs }: RequestPlan, args: Fields): void {
  const known = new Set(inputs.filter(({ fixed }) => fixed === undefined).map(({ argument }) => argument))
  const unknown = Object.keys(args).filter((name) => !known.has(name))
  if (unknown.length === 0) return
  const shown = unknown.slice(0, 5).map((name) => JSON.stringify(name.slice(0, 80)))
  throw new GatehouseError('INVALID_PARAMS', { detail: `unknown arguments: ${shown.join(', ')}` })
}

/** Returns the argument; undefined for an absent optional argument. Outside a body, null counts as absent. */
function valueOf(input: RequestInput, args: Fields): unknown {
  if (input.fixed !== undefined) return input.fixed
  const value = own(args, input.argument)
  const isAbsent = value === undefined || (value === null && input.in !== 'body' && input.in !== 'wholeBody')
  if (!isAbsent) return value
  if (input.required) throw invalidArgument(input, 'is required')
  return undefined
}

function pathOf(plan: RequestPlan, given: Given): string {
  const texts = new Map(given.map(([input, value]) => [input.name, pathText(input, value)]))
  const parts = plan.path.map((part) => ('text' in part ? part.text : texts.get(part.parameter)))
  const path = parts.join('')
  if (parts.includes(undefined) || !hasSameShape(plan, path))
    throw new GatehouseError('INVALID_PARAMS', {
      detail: 'the arguments would change the path of the operation',
    })
  return path
}

/** True when the path has as many segments as the template, and a URL parser does not change the path. */
function hasSameShape(plan: RequestPlan, path: string): boolean {
  const template = plan.path.map((part) => ('text' in part ? part.text : 'x')).join('')
  const url = URL.parse(`http://host${path}`)
  const hasSameSegments = path.split('/').length === template.split('/').length
  return hasSameSegments && !path.startsWith('//') && url?.pathname === path
}

function pairsOf(plan: RequestPlan, location: RequestInput['in'], given: Given): readonly EncodedPair[] {
  const names = plan.inputs.filter((input) => input.in === location).map(({ name }) => name)
  const reserved = [methodParameter, ...(plan.credential === undefined ? [] : [plan.credential])]
  return given.flatMap(([input, value]) => {
    const others = names.filter((name) => name !== input.name)
    return queryPairs(input, value, new Set([...others, ...reserved].map((name) => name.toLowerCase())))
  })
}

function joined(pairs: readonly EncodedPair[]): string {
  return pairs.map(([name, value]) => `${name}=${value}`).join('&')
}

function bodyText(plan: RequestPlan, whole: unknown, members: Given): string | undefined {
  if (!plan.body) return undefined
  if (whole !== undefined) return JSON.stringify(whole)
  if (!plan.body.required && members.length === 0) return undefined
  if (plan.body.encoding === 'form')
    return joined(
      pairsOf(
        plan,
        'body',
        members.filter(([, value]) => value !== null),
      ),
    )
  return JSON.stringify(Object.fromEntries(members.map(([{ name }, value]) => [name, value])))
}
