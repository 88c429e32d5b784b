/**
 * Aliases for tools whose names are too long for clients. This module translates names in lists and calls, so policies,
 * webhooks, limits and workflows see the tools' own names. Clients may also use the tools' own names.
 *
 * Lists are translated outside the feature surfaces. Calls, including those from scripts and tool search, are
 * translated exactly once, before the checks. Translating a name twice could be wrong, because the result may itself be
 * another tool's alias.
 * Source: docs/reference/specification/virtual-server.md#aggregation.
 */
import {
  arrayEnd,
  arrayStart,
  comma,
  JsonObject,
  readMembers,
  type TurnWork,
  visitElementsInTurns,
  workOn,
} from '../../mcp/index.ts'
import { type Aliases, mayBeAlias } from '../catalog/names/aliases.ts'
import { type Link, type Operation, type Perform, withParams } from '../model/operation.ts'
import type { OperationClient } from '../model/session.ts'
import type { Outcome } from '../model/outcome.ts'

/**
 * Replaces the alias in a tool call with the tool's own name. `limit` is the maximum length of a name in a client's
 * lists.
 */
export function resolveAliases(
  limit: number,
  nameOf: (client: OperationClient, alias: string) => Promise<string | undefined>,
): Link {
  async function resolved(operation: Operation, alias: string, next: Perform): Promise<Outcome> {
    const name = await nameOf(operation.client, alias)
    if (name === undefined || name === alias) return next(operation)
    const params = operation.params.with({ name: JSON.stringify(name) })
    return next(withParams(operation, new JsonObject(params)))
  }
  return function resolveAliases(operation, next) {
    const name = operation.params.text('name') ?? ''
    // Most names are shorter than an alias.
    const isShort = name.length < limit - 1
    return isShort || !mayBeAlias(name, limit) ? next(operation) : resolved(operation, name, next)
  }
}

/**
 * Replaces long names in a list of tools with aliases. `aliasesOf` returns the known aliases without contacting any
 * backend.
 */
export function showAliases(aliasesOf: (client: OperationClient) => Aliases): Link {
  const shown = new WeakMap<Buffer, { readonly aliases: Aliases; readonly result: Buffer }>()
  return async function showAliases(operation, next) {
    const outcome = await next(operation)
    if (outcome.kind !== 'result') return outcome
    const aliases = aliasesOf(operation.client)
    if (aliases.aliasByName.size === 0) return outcome
    const known = shown.get(outcome.result)
    if (known?.aliases === aliases) return { kind: 'result', result: known.result }
    const result = await withAliases(outcome.result, aliases)
    shown.set(outcome.result, { aliases, result })
    return { kind: 'result', result }
  }
}

async function withAliases(list: Buffer, { aliasByName }: Aliases): Promise<Buffer> {
  await workOn(list, readMembers(list))
  const result = new JsonObject(list)
  const tools = result.raw('tools')
  if (!tools) return list
  const parts: Buffer[] = []
  function* rename(from: number, to: number): TurnWork<void> {
    const item = tools?.subarray(from, to) ?? list
    yield* readMembers(item)
    const tool = new JsonObject(item)
    const alias = aliasByName.get(tool.text('name') ?? '')
    if (parts.length > 0) parts.push(comma)
    parts.push(alias === undefined ? item : tool.with({ name: JSON.stringify(alias) }))
  }
  await workOn(tools, visitElementsInTurns(tools, rename))
  return result.with({ tools: Buffer.concat([arrayStart, ...parts, arrayEnd]) })
}
