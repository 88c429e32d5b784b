/** A real Helm for tests: the program named by HELM, or the one in PATH. */
import { spawnSync } from 'node:child_process'
import type { KubeApiserver, Ran } from './apiserver.ts'

const program = process.env['HELM'] ?? 'helm'

/** Why there is none, for `{ skip }`; false when there is. */
export function helmMissing(): string | false {
  const { status } = spawnSync(program, ['version'])
  return status === 0 ? false : 'no helm in PATH, and HELM is not set'
}

/** Runs it; with a cluster as its administrator. Never throws for a refusal. */
export function helm(args: readonly string[], kube?: Pick<KubeApiserver, 'kubeconfig'>): Ran {
  const env = { ...process.env, ...(kube && { KUBECONFIG: kube.kubeconfig }) }
  const { status, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8', maxBuffer: 2 ** 26 })
  return { code: status ?? 1, stdout, stderr }
}
