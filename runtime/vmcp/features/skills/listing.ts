/**
 * Prepares the resources of a backend's listing that belong to skills. With several backends, clients see their
 * addresses below the backend's name. Each listing is prepared once.
 */
import { JsonObject } from '../../../mcp/index.ts'
import type { Listing } from '../../catalog/listing.ts'
import { isSkillAddress, type SkillAddresses } from '../../catalog/names/skill-addresses.ts'
import type { CatalogItem } from '../../model/catalog/entries.ts'
import { skillsExtensionId } from '../../model/extensions.ts'

/** True if a backend declares the skills extension. */
export function declaresSkills({ server }: Pick<Listing, 'server'>): boolean {
  return server.extensions.has(skillsExtensionId)
}

/** True if a backend that declares the extension also lists directories. */
export function listsDirectories({ server }: Pick<Listing, 'server'>): boolean {
  return server.extensions.get(skillsExtensionId)?.['directoryRead'] === true
}

export class SkillListings {
  readonly addresses: SkillAddresses
  readonly #prepared = new WeakMap<Listing, Listing>()
  readonly #skillBackends = new Set<string>()

  constructor(addresses: SkillAddresses) {
    this.addresses = addresses
  }

  /** True for an address of a skill that does not begin with the name of a backend. */
  isForeign(uri: string): boolean {
    return isSkillAddress(uri) && this.addresses.ownerOf(uri) === undefined
  }

  /** True for an address that stands for a backend's URI with another scheme than `skill://`. */
  hasOtherScheme(uri: string): boolean {
    const backend = isSkillAddress(uri) ? this.addresses.ownerOf(uri) : undefined
    return backend !== undefined && !isSkillAddress(this.addresses.uriOf(backend, uri))
  }

  /** Backends that declare skills or list resources with `skill://`. Their results may contain such addresses. */
  get skillBackends(): ReadonlySet<string> {
    return this.#skillBackends
  }

  /**
   * Returns the params of `notifications/resources/updated` with the address that clients see. Only addresses of skills
   * change.
   */
  updateOf(backend: string, params: Buffer): Buffer {
    const object = new JsonObject(params)
    const uri = object.text('uri') ?? ''
    const isChanged = this.addresses.backends !== undefined && isSkillAddress(uri)
    const address = isChanged ? this.addresses.addressOf(backend, uri) : undefined
    return address === undefined ? params : object.with({ uri: JSON.stringify(address) })
  }

  /** Returns the listing as clients see it. */
  apply(listing: Listing): Listing {
    const known = this.#prepared.get(listing)
    if (known) return known
    const shown = this.addresses.backends ? this.#prefixed(listing) : listing
    if (shown.resources !== listing.resources || declaresSkills(listing))
      this.#skillBackends.add(listing.backend)
    this.#prepared.set(listing, shown)
    return shown
  }

  #prefixed(listing: Listing): Listing {
    const { backend, resources, templates } = listing
    const hasSkills = [...resources, ...templates].some(({ key }) => isSkillAddress(key))
    const prefixed = { ...listing, prefixesSkills: true }
    if (!hasSkills) return prefixed
    const shown = (item: CatalogItem, member: 'uri' | 'uriTemplate'): CatalogItem =>
      this.#shown(backend, item, member)
    return {
      ...prefixed,
      resources: resources.map((item) => shown(item, 'uri')),
      templates: templates.map((item) => shown(item, 'uriTemplate')),
    }
  }

  #shown(backend: string, item: CatalogItem, member: 'uri' | 'uriTemplate'): CatalogItem {
    const { key, sessionJson } = item
    const address = isSkillAddress(key) ? this.addresses.addressOf(backend, key) : undefined
    if (address === undefined) return item
    const change = (json: Buffer): Buffer => new JsonObject(json).with({ [member]: JSON.stringify(address) })
    return {
      ...item,
      key: address,
      original: key,
      json: change(item.json),
      ...(sessionJson && { sessionJson: change(sessionJson) }),
    }
  }
}
