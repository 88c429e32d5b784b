/**
 * Determines why a server on this machine does not respond, and writes the causes to a file for the virtual servers of
 * its namespace. The virtual servers report these causes in `/status`, the console and their errors, instead of a
 * refused connection.
 */
import { writeFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { type Cause, decisiveLine } from '../../observe/index.ts'
import type { LocalObject } from '../manifests/objects.ts'

/** The parts of a workload's state that explain why its server does not respond. */
interface ServerProcess {
  readonly parent: LocalObject
  readonly phase: string
  readonly cause?: Cause
  readonly refusal?: string | undefined
  readonly starting?: unknown
  readonly secrets?: readonly string[]
}

/**
 * Returns the reason why the server behind these workloads does not respond. Undefined when no workload has a cause.
 */
export function causeOfServer(views: readonly ServerProcess[]): Cause | undefined {
  const failed = (['failed', 'not runnable', 'starting'] as const).flatMap((phase) =>
    views.filter((view) => view.phase === phase && view.cause !== undefined),
  )[0]
  if (failed) return failed.cause
  const refusal = views.find((view) => view.refusal !== undefined)?.refusal
  if (refusal !== undefined) return { category: 'program_refused', detail: decisiveLine([refusal]) }
  return views.some(({ starting }) => starting) ? { category: 'program_starting' } : undefined
}

export function causesFileIn(folder: string, namespace = 'default'): string {
  return join(folder, `causes-${namespace}.json`)
}

export class CauseFiles {
  readonly #written = new Map<string, string>()

  /** Writes one file for each namespace. */
  update(folder: string, workloads: readonly ServerProcess[]): void {
    for (const [namespace, views] of Map.groupBy(workloads, ({ parent }) => parent.metadata.namespace)) {
      const path = causesFileIn(folder, namespace)
      const text = JSON.stringify(causesOf(views))
      if (this.#written.get(path) === text) continue
      this.#written.set(path, text)
      try {
        writeFileSync(`${path}.new`, text, { mode: 0o600 })
        renameSync(`${path}.new`, path)
      } catch {
        // The session reports a folder that is not writable. Without the file, servers report the refused connection.
      }
    }
  }
}

function causesOf(workloads: readonly ServerProcess[]): Readonly<Record<string, Cause>> {
  const causes: Record<string, Cause> = {}
  for (const [name, views] of Map.groupBy(workloads, ({ parent }) => parent.metadata.name)) {
    const cause = causeOfServer(views)
    const secrets = views.flatMap((view) => view.secrets ?? [])
    if (cause) causes[name] = { ...cause, ...(cause.detail && { detail: masked(cause.detail, secrets) }) }
  }
  return causes
}

/** `/status` requires no login, so it must not contain a secret that a program has printed. */
function masked(text: string, secrets: readonly string[]): string {
  let result = text
  for (const secret of secrets) if (secret !== '') result = result.replaceAll(secret, '[redacted]')
  return result
}
