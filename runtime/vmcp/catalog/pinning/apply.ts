/**
 * Makes of a listing what may be offered of it: before overrides, filters and prefixes, so that no name of ours hides a
 * change. What is refused stays in the listing, marked, because its name must not lead to another backend instead.
 */
import type { Pinning } from '../../../../schemas/index.ts'
import { JsonObject } from '../../../mcp/index.ts'
import type { Listing } from '../listing.ts'
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'
import type { EvaluatedItem, Evaluation } from './evaluate.ts'
import type { PinKind, PinReason } from '../../model/catalog/pinning.ts'
import { type ApprovedForm, type CompiledLock, pinKey } from './types.ts'

export interface PinSettings extends Pinning {
  /** Nothing of the lock can be relied on. */
  readonly invalid: boolean
}

/** The settings for one backend: those of its lock, then those of the server. */
export function settingsFor(pinning: Pinning, lock: CompiledLock | undefined): PinSettings {
  return {
    onChanged: lock?.onChanged ?? pinning.onChanged,
    onNew: lock?.onNew ?? pinning.onNew,
    onRemoved: lock?.onRemoved ?? pinning.onRemoved,
    noLock: pinning.noLock,
    invalid: lock?.failure !== undefined,
  }
}

/** Why nothing of a backend is offered; undefined when its items are looked at one by one, or not at all. */
export function closedBy(settings: PinSettings, lock: CompiledLock | undefined): PinReason | undefined {
  if (!lock) return settings.noLock === 'allow' ? undefined : 'no_lock'
  const enforces =
    settings.onChanged === 'freeze' || settings.onChanged === 'block' || settings.onNew === 'block'
  return settings.invalid && enforces ? 'lock_invalid' : undefined
}

/** The listing as it may be offered; `evaluation` undefined: there is no lock that says anything. */
export function applyPins(
  listing: Listing,
  evaluation: Evaluation | undefined,
  settings: PinSettings,
  closed: PinReason | undefined,
): Listing {
  if (!closed && !evaluation) return listing
  const offer = <I extends CatalogItem>(kind: PinKind, items: readonly I[]): readonly I[] =>
    items.map((item) => offered(item, evaluation?.items.get(pinKey(kind, item.key)), settings, closed))
  return {
    ...listing,
    ...(closed && { closed }),
    tools: offer('tool', listing.tools),
    prompts: offer('prompt', listing.prompts),
    templates: offer('resourceTemplate', listing.templates),
    server: { ...listing.server, instructions: instructions(listing, evaluation, settings, closed) },
  }
}

function offered<I extends CatalogItem>(
  item: I,
  found: EvaluatedItem | undefined,
  { onChanged, onNew }: PinSettings,
  closed: PinReason | undefined,
): I {
  if (closed) return { ...item, refused: closed }
  if (found?.state === 'pinned') return item
  if (found?.state !== 'changed' || !found.form)
    return onNew === 'block' ? { ...item, refused: 'tool_new' } : item
  if (onChanged === 'block') return { ...item, refused: 'tool_changed' }
  if (onChanged !== 'freeze') return item
  const frozen = frozenForm(found)
  if (!frozen) return { ...item, refused: 'tool_changed' }
  // Nothing of the changed definition stays, in whatever form.
  const { sessionJson: _, ...own } = item
  return { ...(own as I), ...frozen }
}

function instructions(
  { server }: Listing,
  evaluation: Evaluation | undefined,
  { onChanged, onNew }: PinSettings,
  closed: PinReason | undefined,
): string | undefined {
  const found = evaluation?.items.get(pinKey('instructions', ''))
  if (closed) return undefined
  if (!found || found.state === 'pinned') return server.instructions
  if (found.state === 'new') return onNew === 'block' ? undefined : server.instructions
  if (onChanged === 'block') return undefined
  if (onChanged !== 'freeze') return server.instructions
  const approved: unknown = JSON.parse(found.form?.item.json.toString() ?? 'null')
  return typeof approved === 'string' ? approved : undefined
}

type Frozen = Pick<CatalogItem, 'json' | 'check'> & Partial<Pick<ToolItem, 'sessionJson' | 'mirrored'>>

/** Approved definitions as they stand in for changed ones; made once for each. */
const frozenForms = new WeakMap<ApprovedForm, Map<boolean, Frozen | undefined>>()

/** Undefined when calls could not be checked against the approved definition. */
function frozenForm({ kind, form, parts }: EvaluatedItem): Frozen | undefined {
  if (!form) return undefined
  const dropsOutput = parts.includes('output')
  const known = frozenForms.get(form) ?? new Map<boolean, Frozen | undefined>()
  frozenForms.set(form, known)
  if (!known.has(dropsOutput)) known.set(dropsOutput, freeze(kind, form, dropsOutput))
  return known.get(dropsOutput)
}

function freeze(kind: PinKind, { item, check }: ApprovedForm, dropsOutput: boolean): Frozen | undefined {
  const { json, sessionJson } = item
  const forms = {
    json: dropsOutput ? withoutOutput(json) : json,
    sessionJson: sessionJson && dropsOutput ? withoutOutput(sessionJson) : sessionJson,
  }
  const frozen = { json: forms.json, ...(forms.sessionJson ? { sessionJson: forms.sessionJson } : {}) }
  if (kind === 'prompt') return check && { ...frozen, check }
  if (kind !== 'tool' || !('mirrored' in item)) return frozen
  return check && { ...frozen, mirrored: item.mirrored, check }
}

/** A result of the backend may not be what the approved schema of results says. */
function withoutOutput(json: Buffer): Buffer {
  return new JsonObject(json).with({ outputSchema: undefined })
}
