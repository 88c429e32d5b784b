/**
 * An approval as a command for somebody who may write the lock. The patch names what it replaces: where the object says
 * something else by then, the API server refuses it and nothing is overwritten. Pure.
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

/** What a terminal takes in one go, and a page shows. */
const maxCommand = 200_000

/**
 * For a shell: the patch stands in a here-document, where nothing of it means anything to the shell. Throws
 * LOCK_NOT_WRITTEN when a lock cannot hold it, or no command.
 */
export function patchCommand(lock: input.RuntimeToolLock, namespace: string, reviewed: Reviewed): string {
  const { type, patch } = patchOf(lock, reviewed)
  const command = `kubectl patch mcptoollock ${lock.name ?? ''} -n ${namespace} --type=${type} --patch-file=/dev/stdin <<'PATCH'\n${plainJson(patch)}\nPATCH`
  if (command.length > maxCommand)
    throw notWritten('the command would be too long to copy: write the lock with gatehouse lock')
  return command
}

/** A terminal shows every character as what it is. kubectl reads a patch as YAML, whose escapes know no surrogates. */
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
  // Nobody here knows whether the lock says anything of the server.
  if (lock.instructions === undefined) return { type: 'merge', patch: { spec: { server: { instructions } } } }
  const path = '/spec/server/instructions'
  const next = instructions === undefined ? { op: 'remove', path } : { op: 'add', path, value: instructions }
  return { type: 'json', patch: [{ op: 'test', path, value: lock.instructions }, next] }
}

function itemPatch(
  lock: input.RuntimeToolLock,
  reviewed: Reviewed,
  member: 'tools' | 'prompts' | 'resourceTemplates',
): readonly PatchStep[] {
  const { name, offered, perCaller } = reviewed
  const items = lock[member] ?? []
  const at = items.findIndex((item) => item.name === name)
  const path = `/spec/${member}/${at}`
  const before = items[at]
  checkHoldable(before?.variants?.length ?? 0, reviewed)
  if (!before) {
    if (offered === undefined) throw notWritten('the lock does not have it any more')
    const item = { name, ...plainForm(offered) }
    // A list that came since is not replaced; of two items with one name the API server keeps neither.
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
    // null: there are none.
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
