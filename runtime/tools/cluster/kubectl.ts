/** Runs kubectl with the flags that this program was given. kubectl finds the cluster by itself. */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import { constants } from 'node:os'
import { GatehouseError } from '../../../schemas/index.ts'
import { exitCode } from '../../toolkit/terminal/output.ts'
import type { ClusterFlags } from './reader.ts'

/** The flags by which kubectl takes the same cluster and `namespace`. */
export function kubectlFlags({ context, kubeconfig }: ClusterFlags, namespace: string): readonly string[] {
  return [
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === undefined ? [] : [`--context=${context}`]),
    `--namespace=${namespace}`,
  ]
}

export interface Kubectl {
  readonly child: ChildProcess
  /** Exit code; rejects with a GatehouseError when there is no kubectl. */
  readonly ended: Promise<number>
  /** Somebody has asked this program to stop. */
  isInterrupted(): boolean
}

/** It ends with this program: signals of a terminal reach both, others are passed on. */
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
          ? 'there is no kubectl in PATH, which this command needs: https://kubernetes.io/docs/tasks/tools/'
          : `kubectl cannot be started: ${cause.message}`
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
