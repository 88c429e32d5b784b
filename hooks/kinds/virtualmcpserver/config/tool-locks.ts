/**
 * Converts the backends' MCPToolLocks for the running server. An invalid lock blocks its backend, because none of the
 * definitions counts as approved.
 */
import { formatViolations, type input, runtimeToolLock } from '../../../../schemas/index.ts'
import { fieldsOf, type KubeObject } from '../../../base/kube.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { ResolvedBackend } from './backends.ts'

type Context = SyncContext<'VirtualMCPServer'>

/** Returns undefined when pinning is off or there are no locks. */
export function toolLocks(
  context: Context,
  backends: readonly ResolvedBackend[],
): readonly input.RuntimeToolLock[] | undefined {
  if (!context.parent.spec.config?.pinning) return undefined
  const locks = backends
    .filter(({ backend }) => backend !== undefined)
    .flatMap((backend) =>
      context
        .members('MCPToolLock')
        .filter((lock) => isFor(lock, backend))
        .map((lock) => runtimeLock(context, lock, backend.name)),
    )
  return locks.length > 0 ? locks : undefined
}

function isFor(lock: KubeObject, { name, member }: ResolvedBackend): boolean {
  const ref = fieldsOf(fieldsOf(lock['spec'])['backendRef'])
  return ref['name'] === name && ref['kind'] === (member?.kind ?? 'Backend')
}

const maxFailure = 1_024

function runtimeLock(context: Context, lock: KubeObject, backend: string): input.RuntimeToolLock {
  const { name } = lock.metadata
  const violations = context.violationsOf(lock)
  const spec = violations.length > 0 ? undefined : context.filled('MCPToolLock', name)?.spec
  if (!spec) {
    const failure = `MCPToolLock ${name} is not valid: ${formatViolations(violations)}`
    return { name, backend, failure: failure.slice(0, maxFailure), ...legalSettings(lock) }
  }
  return runtimeToolLock(spec, backend, name)
}

const settings = {
  onChanged: ['observe', 'warn', 'freeze', 'block'],
  onNew: ['observe', 'warn', 'block'],
  onRemoved: ['observe', 'warn'],
} as const

/**
 * Keeps the enforcement settings of an invalid lock. Otherwise, a server that only observes would expose the backend.
 */
function legalSettings(lock: KubeObject): Pick<input.RuntimeToolLock, keyof typeof settings> {
  const spec = fieldsOf(lock['spec'])
  const legal = Object.entries(settings).filter(([name, values]) =>
    (values as readonly unknown[]).includes(spec[name]),
  )
  return Object.fromEntries(legal.map(([name]) => [name, spec[name]]))
}
