/**
 * Builds the kubectl command that a user with write permission runs to approve a difference. The patch tests the values
 * that it replaces, so the API server rejects it when the object has changed. Pure.
 */
import type { input } from '../../../../schemas/index.ts'
import { plainForm } from '../manifest.ts'
import { checkHoldable, memberOf, type Reviewed } from './change.ts'
import { notWritten } from './edit.ts'

interface PatchStep {
  readonly op: 'test' | 'add' | 'remove'
  readonly path: string
  readonly value?: unknown
}

/** Maximum length of a command that a terminal accepts and a page can show. */
const maxCommand = 200_000

/**
 * Returns the command. The patch is in a here-document, where the shell does not expand anything. Throws
 * LOCK_NOT_WRITTEN when a lock or a command cannot contain the definition.
 */
export function patchCommand(lock: input.RuntimeToolLock, namespace: string, reviewed: Reviewed): string {
  const { type, patch } = patchOf(lock, reviewed)
  const command = `kubectl patch mcptoollock ${lock.name ?? ''} -n ${namespace} --type=${type} --patch-file=/dev/stdin <<'PATCH'\n${plainJson(patch)}\nPATCH`
  if (command.length > maxCommand)
    throw notWritten('the command would be too long to copy: write the lock with gatehouse lock')
  return command
}

/** Escapes all non-ASCII characters. kubectl reads a patch as YAML, which has no surrogate escapes. */
function plainJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/gu, (found) => {
    const hex = (found.codePointAt(0) ?? 0).toString(16)
    return hex.length > 4 ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`
  })
}

interface Patch {
  /** A JSON patch (RFC 6902), or a merge patch (RFC 7396). */
  readonly type: 'json' | 'merge'
  readonly patch: unknown
}

function patchOf(lock: input.RuntimeToolLock, reviewed: Reviewed): Patch {
  const { kind, offered } = reviewed
  if (kind !== 'instructions') return { type: 'json', patch: itemPatch(lock, reviewed, memberOf[kind]) }
  checkHoldable(0, reviewed)
  const instructions: unknown = offered === undefined ? undefined : JSON.parse(offered)
  // The object might not contain `server`, so use a merge patch.
  if (lock.instructions === undefined) return { type: 'merge', patch: { spec: { server: { instructions } } } }
  const path = '/spec/server/instructions'
  const next = instructions === undefined ? { op: 'remove', path } : { op: 'add', path, value: instructions }
  return { type: 'json', patch: [{ op: 'test', path, value: lock.instructions }, next] }
}

function itemPatch(
  lock: input.RuntimeToolLock,
  reviewed: Reviewed,
  member: (typeof memberOf)[keyof typeof memberOf],
): readonly PatchStep[] {
  const { name, offered, perCaller } = reviewed
  const items = lock[member] ?? []
  const at = items.findIndex((item) => item.name === name)
  const path = `/spec/${member}/${at}`
  const before = items[at]
  checkHoldable(before?.variants?.length ?? 0, reviewed)
  if (!before) {
    if (offered === undefined) throw notWritten('the lock no longer contains this item')
    const item = { name, ...plainForm(offered) }
    // A list that was added in the meantime is not replaced. The API server rejects two items with the same name.
    return items.length > 0
      ? [{ op: 'add', path: `/spec/${member}/-`, value: item }]
      : [
          { op: 'test', path: `/spec/${member}`, value: null },
          { op: 'add', path: `/spec/${member}`, value: [item] },
        ]
  }
  const same: PatchStep[] = [
    { op: 'test', path: `${path}/name`, value: name },
    ...members(plainForm(before.definition)).map(
      ([key, value]): PatchStep => ({ op: 'test', path: `${path}/${key}`, value }),
    ),
    // null means that there are no variants.
    { op: 'test', path: `${path}/variants`, value: before.variants?.map(plainForm) ?? null },
  ]
  if (offered === undefined) return [...same, { op: 'remove', path }]
  const form = plainForm(offered)
  if (perCaller)
    return [
      ...same,
      before.variants?.length
        ? { op: 'add', path: `${path}/variants/-`, value: form }
        : { op: 'add', path: `${path}/variants`, value: [form] },
    ]
  return [
    ...same,
    ...members(plainForm(before.definition)).map(
      ([key]): PatchStep => ({ op: 'remove', path: `${path}/${key}` }),
    ),
    ...members(form).map(([key, value]): PatchStep => ({ op: 'add', path: `${path}/${key}`, value })),
    ...(before.variants?.length ? [{ op: 'remove' as const, path: `${path}/variants` }] : []),
  ]
}

function members(form: object): [string, unknown][] {
  return Object.entries(form)
}
