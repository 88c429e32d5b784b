/**
 * Kind -> hooks: the one table from which the server takes its routes and manifests/ its CompositeControllers.
 */
import type { HookEvent } from './server/events.ts'
import type { ChildKind, KindHooks, RelatedKind } from './kind-hooks.ts'
import { byText } from './kube.ts'
import { embeddingServer } from './kinds/embeddingserver/index.ts'
import { mcpAuthzConfig } from './kinds/mcpauthzconfig/index.ts'
import { mcpExternalAuthConfig } from './kinds/mcpexternalauthconfig/index.ts'
import { mcpGroup } from './kinds/mcpgroup/index.ts'
import { mcpOidcConfig } from './kinds/mcpoidcconfig/index.ts'
import { mcpRemoteProxy } from './kinds/mcpremoteproxy/index.ts'
import { mcpServer } from './kinds/mcpserver/index.ts'
import { mcpServerEntry } from './kinds/mcpserverentry/index.ts'
import { mcpTelemetryConfig } from './kinds/mcptelemetryconfig/index.ts'
import { mcpToolConfig } from './kinds/mcptoolconfig/index.ts'
import { compositeToolDefinition } from './kinds/virtualmcpcompositetooldefinition/index.ts'
import { virtualMcpServer } from './kinds/virtualmcpserver/index.ts'
import {
  type CustomizeResponse,
  readCustomizeRequest,
  readSyncRequest,
  type SyncResponse,
} from './sync/protocol.ts'
import { pluralOf } from './sync/rules.ts'
import type { HookSettings } from './settings.ts'

/** One kind's hooks as the edges call them: with a request body that nobody has looked at. */
export interface HookEntry {
  readonly kind: string
  /** Plural resource name, as in the hook's URL. */
  readonly plural: string
  readonly childKinds: readonly ChildKind[]
  readonly relatedKinds: readonly RelatedKind[]
  /** Throws GatehouseError BAD_REQUEST when the body is not a customize request for this kind. */
  readonly customize: (body: unknown) => CustomizeResponse
  /** Throws GatehouseError BAD_REQUEST when the body is not a sync request for this kind. */
  readonly sync: (body: unknown) => SyncResponse
  readonly events?: (body: unknown) => readonly HookEvent[]
}

/** All kinds, in the order of their names. */
export interface HookRegistry extends Iterable<HookEntry> {
  readonly settings: HookSettings
  readonly byPlural: (plural: string) => HookEntry | undefined
  readonly byKind: (kind: string) => HookEntry | undefined
}

const all: readonly KindHooks[] = [
  compositeToolDefinition,
  embeddingServer,
  mcpAuthzConfig,
  mcpExternalAuthConfig,
  mcpGroup,
  mcpOidcConfig,
  mcpRemoteProxy,
  mcpServer,
  mcpServerEntry,
  mcpTelemetryConfig,
  mcpToolConfig,
  virtualMcpServer,
]

/** Binds the hooks of all kinds to the settings of one installation. */
export function makeHooks(settings: HookSettings): HookRegistry {
  const entries = all.map((hooks) => entryOf(hooks, settings)).sort((a, b) => byText(a.kind, b.kind))
  const plurals = new Map(entries.map((entry) => [entry.plural, entry]))
  const kinds = new Map(entries.map((entry) => [entry.kind, entry]))
  return {
    settings,
    byPlural: (plural) => plurals.get(plural),
    byKind: (kind) => kinds.get(kind),
    [Symbol.iterator]: () => entries[Symbol.iterator](),
  }
}

function entryOf(hooks: KindHooks, settings: HookSettings): HookEntry {
  const { kind, childKinds, relatedKinds, events } = hooks
  return {
    kind,
    plural: pluralOf(kind),
    childKinds,
    relatedKinds,
    customize: (body) => hooks.customize(readCustomizeRequest(body, kind)),
    sync: (body) => hooks.sync(readSyncRequest(body, kind), settings),
    ...(events && { events: (body: unknown) => events(readCustomizeRequest(body, kind).parent, settings) }),
  }
}
