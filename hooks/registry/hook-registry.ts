/** Binds the hooks of all kinds to the settings of one installation. Callers pass unvalidated request bodies. */
import { byText, type KindName } from '../../schemas/index.ts'
import { resourceViolations } from './violations.ts'
import {
  type HookEvent,
  type CustomizeResponse,
  readCustomizeRequest,
  readSyncRequest,
  type SyncResponse,
} from '../sync/protocol.ts'
import { type RelatedKind, pluralOf } from '../sync/rules.ts'
import type { ChildKind } from '../sync/child-kinds.ts'
import { allKindHooks, type AnyKindHooks } from './registry.ts'
import { SyncContext } from '../sync/context.ts'
import { progressEvents } from '../sync/progress.ts'
import type { HookSettings } from '../base/settings.ts'

/** One kind's hooks. */
export interface HookEntry {
  readonly kind: KindName
  /** Plural resource name, as in the hook's URL. */
  readonly plural: string
  readonly childKinds: readonly ChildKind[]
  readonly relatedKinds: readonly RelatedKind[]
  /** True when a sync of a small request can take long. */
  readonly isExpensive: boolean
  /** Throws GatehouseError BAD_REQUEST when the body is not a customize request for this kind. */
  readonly customize: (body: unknown) => CustomizeResponse
  /** Throws GatehouseError BAD_REQUEST when the body is not a sync request for this kind. */
  readonly sync: (body: unknown) => SyncResponse
  /** Returns the events for the parent's state after its sync. */
  readonly events: (body: unknown, response: SyncResponse) => readonly HookEvent[]
}

/** All kinds, ordered by name. */
export interface HookRegistry extends Iterable<HookEntry> {
  readonly settings: HookSettings
  readonly byPlural: (plural: string) => HookEntry | undefined
  readonly byKind: (kind: string) => HookEntry | undefined
}

export function makeHooks(settings: HookSettings): HookRegistry {
  const entries = allKindHooks()
    .map((hooks) => entryOf(hooks, settings))
    .sort((a, b) => byText(a.kind, b.kind))
  const plurals = new Map(entries.map((entry) => [entry.plural, entry]))
  const kinds = new Map<string, HookEntry>(entries.map((entry) => [entry.kind, entry]))
  return {
    settings,
    byPlural: (plural) => plurals.get(plural),
    byKind: (kind) => kinds.get(kind),
    [Symbol.iterator]: () => entries[Symbol.iterator](),
  }
}

function entryOf(hooks: AnyKindHooks, settings: HookSettings): HookEntry {
  const { kind, childKinds, relatedKinds, isExpensive = false, events } = hooks
  const violationsOf = (object: unknown) => resourceViolations(object, settings)
  return {
    kind,
    plural: pluralOf(kind),
    childKinds,
    relatedKinds,
    isExpensive,
    customize: (body) => hooks.customize(readCustomizeRequest(body, kind), settings),
    sync: (body) =>
      hooks.sync(new SyncContext(readSyncRequest(body, kind), { settings, violationsOf }, kind)),
    events(body, { status }) {
      const { parent } = readCustomizeRequest(body, kind)
      return [...(events?.(parent, violationsOf) ?? []), ...progressEvents(parent, status)]
    },
  }
}
