/**
 * The protocol extensions that a virtual server supports: `implementedExtensions`, and those in `extensions.custom`.
 *
 * The server advertises what Gatehouse implements and the configuration enables, not what the backends offer right now.
 * A cached `server/discover` response therefore stays correct. A backend receives a client's declaration of an extension
 * only if the extension is enabled.
 * Source: SEP-2133; SEP-3392 (revisions); docs/guides/apps.md.
 */
import { type CustomExtension, type Extensions, type Fields, isFields } from '../../../schemas/index.ts'
import { type Era, JsonObject } from '../../mcp/index.ts'

/** An extension that Gatehouse implements. To add an extension, add a record to `implementedExtensions`. */
export interface Extension {
  readonly id: string
  /** Settings that the server advertises. */
  readonly serverSettings: Fields
  /** Settings that replace a client's own settings when too many clients with different capabilities arrive. */
  readonly clientSettings: Fields
  /** Protocol eras of clients that may use the extension. */
  readonly eras: readonly Era[]
  /** Supported values of `revision`. Declarations without a revision are always supported. */
  readonly revisions: readonly string[]
  readonly isEnabled: (config: Extensions) => boolean
}

export const appsExtensionId = 'io.modelcontextprotocol/ui'
export const skillsExtensionId = 'io.modelcontextprotocol/skills'

const implementedExtensions: readonly Extension[] = [
  {
    id: appsExtensionId,
    serverSettings: {},
    clientSettings: { mimeTypes: ['text/html;profile=mcp-app'] },
    eras: ['session', 'stateless'],
    revisions: [],
    isEnabled: ({ apps }) => apps?.enabled !== false,
  },
  {
    id: skillsExtensionId,
    serverSettings: { directoryRead: true },
    clientSettings: {},
    eras: ['session', 'stateless'],
    revisions: [],
    isEnabled: ({ skills }) => skills?.enabled === true,
  },
]

/** The route of a method in `extensions.custom`. */
export type MethodRoute =
  | { readonly by: 'uri' | 'name'; readonly param: string }
  | { readonly by: 'backend'; readonly backend: string }

interface SupportedExtension extends Pick<Extension, 'serverSettings' | 'clientSettings' | 'eras'> {
  readonly extension: Extension | undefined
}

/** The extensions that one configuration enables. */
export class ExtensionSet {
  readonly #supported = new Map<string, SupportedExtension>()
  readonly #routes = new Map<string, MethodRoute>()
  /** The backends that may send a notification. An undefined element stands for every backend. */
  readonly #notifications = new Map<string, readonly (string | undefined)[]>()

  constructor(config: Extensions = {}) {
    for (const extension of implementedExtensions)
      if (extension.isEnabled(config)) this.#supported.set(extension.id, { ...extension, extension })
    for (const custom of config.custom ?? []) this.#addCustom(custom)
  }

  #addCustom(custom: CustomExtension): void {
    this.#supported.set(custom.id, {
      serverSettings: {},
      clientSettings: {},
      eras: ['session', 'stateless'],
      extension: undefined,
    })
    for (const method of custom.methods) this.#routes.set(method, routeOf(custom))
    const sender = custom.routeBy === 'backend' ? custom.backend : undefined
    for (const method of custom.notifications ?? [])
      this.#notifications.set(method, [...(this.#notifications.get(method) ?? []), sender])
  }

  has(id: string): boolean {
    return this.#supported.has(id)
  }

  /** Returns the route of a method in `extensions.custom`, or undefined if the method has no route. */
  routeOf(method: string): MethodRoute | undefined {
    return this.#routes.get(method)
  }

  /** True for a backend's notification that `extensions.custom` allows. */
  allowsNotification(method: string, backend: string): boolean {
    const senders = this.#notifications.get(method) ?? []
    return senders.includes(undefined) || senders.includes(backend)
  }

  /**
   * Returns the extensions that the server advertises, keyed by id. `offered` limits the result to the extensions that
   * backends declare.
   */
  advertised(era: Era, offered?: ReadonlySet<string>): Readonly<Record<string, Fields>> {
    const all = [...this.#supported].filter(
      ([id, { eras }]) => eras.includes(era) && (offered === undefined || offered.has(id)),
    )
    return Object.fromEntries(all.map(([id, { serverSettings }]) => [id, serverSettings]))
  }

  /** Returns the part of a client's `extensions` that backends receive, as raw JSON by id. Throws JsonError. */
  declaredBy(capabilities: JsonObject, era: Era): ReadonlyMap<string, Buffer> {
    const declared = new Map<string, Buffer>()
    for (const [id, raw] of capabilities.object('extensions')?.entries() ?? []) {
      const supported = this.#supported.get(id)
      if (!supported?.eras.includes(era) || raw[0] !== 0x7b) continue
      const { extension } = supported
      if (!extension || hasKnownRevision(extension, new JsonObject(raw).value('revision')))
        declared.set(id, raw)
    }
    return declared
  }

  /** Returns the settings that replace a client's own settings. */
  plainSettings(id: string): Fields {
    return this.#supported.get(id)?.clientSettings ?? {}
  }
}

function routeOf({ routeBy, param, backend = '' }: CustomExtension): MethodRoute {
  return routeBy === 'backend' ? { by: routeBy, backend } : { by: routeBy, param: param ?? routeBy }
}

function hasKnownRevision({ revisions }: Extension, revision: unknown): boolean {
  return revision === undefined || (typeof revision === 'string' && revisions.includes(revision))
}

/** Maximum number and size, as JSON text, of the extensions that are kept for one backend. */
const maxServerExtensions = 32
const maxServerExtensionsBytes = 16 * 1024
const maxShownId = 100

/** The extensions that a backend declares, keyed by id. */
export type ServerExtensions = ReadonlyMap<string, Fields>

export interface ReadServerExtensions {
  readonly extensions: ServerExtensions
  /** Reasons for ignored declarations, one line each. */
  readonly problems: readonly string[]
}

/**
 * Reads the extensions that a backend declares. Ignores declarations that are not objects, that have an unknown
 * revision, or that exceed the limits.
 */
export function readServerExtensions(value: unknown): ReadServerExtensions {
  const extensions = new Map<string, Fields>()
  const problems: string[] = []
  let size = 0
  for (const [id, settings] of Object.entries(isFields(value) ? value : {})) {
    if (!isFields(settings)) continue
    size += id.length + Buffer.byteLength(JSON.stringify(settings))
    if (extensions.size >= maxServerExtensions || size > maxServerExtensionsBytes) {
      problems.push(
        `only the first ${extensions.size} extensions are used; the limits are ${maxServerExtensions} extensions and ${maxServerExtensionsBytes} bytes`,
      )
      break
    }
    const known = implementedExtensions.find((extension) => extension.id === id)
    if (!known || hasKnownRevision(known, settings['revision'])) extensions.set(id, settings)
    else {
      const revision = JSON.stringify(settings['revision']).slice(0, maxShownId)
      problems.push(`extension ${id} is not used, because its revision ${revision} is unknown`)
    }
  }
  return { extensions, problems }
}
