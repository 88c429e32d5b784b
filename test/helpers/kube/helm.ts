/** Runs a real Helm for tests: the program in HELM, in PATH, or built by assets.ts. */
import { spawnSync } from 'node:child_process'
import type { KubeApiserver, Ran } from './apiserver.ts'
import { findProgram, programAbsent } from './assets.ts'

const program = findProgram('helm')

/** Reason that there is no Helm, for `{ skip }`; otherwise false. */
export function helmMissing(): string | false {
  return program !== undefined && spawnSync(program, ['version']).status === 0 ? false : programAbsent('helm')
}

/** Runs Helm, with `kube` as administrator of that cluster. A failure does not throw; see `code` and `stderr`. */
export function helm(args: readonly string[], kube?: Pick<KubeApiserver, 'kubeconfig'>, input = ''): Ran {
  if (program === undefined) throw new Error(programAbsent('helm'))
  const env = { ...process.env, ...(kube && { KUBECONFIG: kube.kubeconfig }) }
  const { status, stdout, stderr } = spawnSync(program, args, {
    env,
    input,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  return { code: status ?? 1, stdout, stderr }
}
