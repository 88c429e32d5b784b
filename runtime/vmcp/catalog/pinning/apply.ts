/**
 * Determines which items in a listing may be offered. This step precedes overrides, filters and prefixes, so renaming
 * cannot hide a change. Refused items stay in the listing and are marked as refused, so their names cannot resolve to
 * another backend.
 */
import type { Pinning } from '../../../../schemas/index.ts'
import { JsonObject } from '../../../mcp/index.ts'
import type { Listing } from '../listing.ts'
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'
import type { EvaluatedItem, Evaluation } from './evaluate.ts'
import type { PinKind, PinReason } from '../../model/catalog/pinning.ts'
import { type ApprovedForm, type CompiledLock, pinKey } from './types.ts'

export interface PinSettings extends Pinning {
  /** True if the lock cannot be used. */
  readonly invalid: boolean
}

/** Returns the settings for a backend. A lock's settings take precedence over the server's settings. */
export function settingsFor(pinning: Pinning, lock: CompiledLock | undefined): PinSettings {
  return {
    onChanged: lock?.onChanged ?? pinning.onChanged,
    onNew: lock?.onNew ?? pinning.onNew,
    onRemoved: lock?.onRemoved ?? pinning.onRemoved,
    noLock: pinning.noLock,
    invalid: lock?.failure !== undefined,
  }
}

/**
 * Returns the reason why none of a backend's items are offered. Returns undefined if the items are checked individually
 * or not at all.
 */
export function closingReason(settings: PinSettings, lock: CompiledLock | undefined): PinReason | undefined {
  if (!lock) return settings.noLock === 'allow' ? undefined : 'no_lock'
  const enforces =
    settings.onChanged === 'freeze' || settings.onChanged === 'block' || settings.onNew === 'block'
  return settings.invalid && enforces ? 'lock_invalid' : undefined
}

/** Returns the listing with only the offered items. `evaluation` is undefined if no usable lock exists. */
export function applyPins(
  listing: Listing,
  evaluation: Evaluation | undefined,
  settings: PinSettings,
  closed: PinReason | undefined,
): Listing {
  if (!closed && !evaluation) return listing
  const offer = <I extends CatalogItem>(kind: PinKind, items: readonly I[]): readonly I[] =>
    items.map((item) => applyPin(item, evaluation?.items.get(pinKey(kind, item.key)), settings, closed))
  return {
    ...listing,
    ...(closed && { closed }),
    tools: offer('tool', listing.tools),
    prompts: offer('prompt', listing.prompts),
    templates: offer('resourceTemplate', listing.templates),
    server: { ...listing.server, instructions: offeredInstructions(listing, evaluation, settings, closed) },
  }
}

function applyPin<I extends CatalogItem>(
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
  // Removes every part of the changed definition, including its form for session-era clients.
  const { sessionJson: _, ...own } = item
  return { ...(own as I), ...frozen }
}

function offeredInstructions(
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

type FrozenForm = Pick<CatalogItem, 'json' | 'check'> & Partial<Pick<ToolItem, 'sessionJson' | 'mirrored'>>

/** Approved definitions that replace changed definitions. Each definition is created only once. */
const frozenForms = new WeakMap<ApprovedForm, Map<boolean, FrozenForm | undefined>>()

/** Returns undefined if calls cannot be checked against the approved definition. */
function frozenForm({ kind, form, parts }: EvaluatedItem): FrozenForm | undefined {
  if (!form) return undefined
  const dropsOutput = parts.includes('output')
  const known = frozenForms.get(form) ?? new Map<boolean, FrozenForm | undefined>()
  frozenForms.set(form, known)
  if (!known.has(dropsOutput)) known.set(dropsOutput, makeFrozenForm(kind, form, dropsOutput))
  return known.get(dropsOutput)
}

function makeFrozenForm(
  kind: PinKind,
  { item, check }: ApprovedForm,
  dropsOutput: boolean,
): FrozenForm | undefined {
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

/** Removes the output schema, because the backend's results may no longer match the approved schema. */
function withoutOutput(json: Buffer): Buffer {
  return new JsonObject(json).with({ outputSchema: undefined })
}
