/** Finds the backend of a request about one skill. The address alone determines the backend. */
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Facts } from '../../../policy/index.ts'
import { requireDecidedTarget } from '../../catalog/facts.ts'
import type { Lookup } from '../../catalog/lookup.ts'
import type { Operation, Target } from '../../model/operation.ts'
import { unavailableError } from '../../model/unavailable.ts'
import { declaresSkills, type SkillListings } from './listing.ts'

interface Shelf {
  readonly listings: Pick<SkillListings, 'addresses'>
}

/**
 * Returns the target of a request about a skill or a directory. Lists of skills have no target. Rejects with
 * INVALID_PARAMS if no backend can have the skill, and with BACKEND_UNAVAILABLE if the backend could not be listed.
 */
export async function skillTarget(
  { client, method, params, origin }: Operation,
  { listings: { addresses } }: Shelf,
  lookup: Pick<Lookup, 'view'>,
): Promise<Target | undefined> {
  if (method === 'skills/list') return undefined
  const address = params.text('uri')
  if (address === undefined)
    throw new GatehouseError('INVALID_PARAMS', { detail: 'Invalid params: uri must be a string' })
  const backend = addresses.ownerOf(address)
  if (backend === undefined) throw unknownSkill(address)
  const { listings } = await lookup.view(client, { waitForFresh: false })
  const listing = listings.find((one) => one.backend === backend)
  if (!listing) throw unavailableError([backend])
  if (!declaresSkills(listing)) throw unknownSkill(address)
  const original = addresses.uriOf(backend, address)
  const entry = { key: address, backend, original, json: Buffer.from('{}') }
  if (origin) requireDecidedTarget(origin, entry)
  return { entry, changes: original === address ? {} : { uri: JSON.stringify(original) } }
}

/** Returns the origin of a skill, whether or not the skill exists. */
export function skillFacts(address: string, shelf: Shelf | undefined): Facts | undefined {
  const { addresses } = shelf?.listings ?? {}
  const backend = addresses?.ownerOf(address)
  if (!addresses || backend === undefined) return undefined
  return { hints: {}, origin: { backend, original: addresses.uriOf(backend, address) } }
}

export function unknownSkill(address: string): GatehouseError {
  const detail = `no skill is served at ${JSON.stringify(address)}`
  return new GatehouseError('INVALID_PARAMS', { detail })
}
