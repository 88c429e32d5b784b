/** Runs kubectl with this program's cluster flags. kubectl locates the cluster itself. */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import { constants } from 'node:os'
import { GatehouseError } from '../../../schemas/index.ts'
import { exitCode } from '../../toolkit/terminal/output.ts'
import type { ClusterFlags } from './reader.ts'

/** Returns the flags that select the same cluster and namespace in kubectl. */
export function kubectlFlags({ context, kubeconfig }: ClusterFlags, namespace: string): readonly string[] {
  return [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === undefined ? [] : [`--context=${context}`]),
    `--namespace=${namespace}`,
  ]
}

export interface Kubectl {
  readonly child: ChildProcess
  /** Exit code. Rejects with a GatehouseError when kubectl cannot be started. */
  readonly ended: Promise<number>
  /** True once this program has received a signal to stop. */
  isInterrupted(): boolean
}

/** Starts kubectl. Forwards signals, so that kubectl exits together with this program. */
export function startKubectl(args: readonly string[], stdio: StdioOptions): Kubectl {
  const child = spawn('kubectl', args, { stdio })
  let interrupted = false
  const pass = (signal: NodeJS.Signals): void => {
    interrupted = true
    child.kill(signal)
  }
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (cause: NodeJS.ErrnoException) => {
      const detail =
        cause.code === 'ENOENT'
          ? 'this command needs kubectl, which is not in PATH: https://kubernetes.io/docs/tasks/tools/'
          : `kubectl failed to start: ${cause.message}`
      reject(new GatehouseError('NOT_FOUND', { detail, cause }))
    })
    child.once('close', (code, signal) => {
      resolve(code ?? (signal === null ? exitCode.failed : 128 + (constants.signals[signal] ?? 0)))
    })
  })
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, pass)
  return {
    child,
    isInterrupted: () => interrupted,
    ended: ended.finally(() => {
      for (const signal of signals) process.off(signal, pass)
    }),
  }
}
