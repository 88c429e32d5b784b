/** The parts of a response that the proxy tests read: pod, status, conditions and the file of the proxy. */
import { parse } from 'yaml'
import type { World } from '../../../../hooks/world.ts'

export interface Pod {
  spec: {
    initContainers?: { args: string[] }[]
    containers: { name: string; args: string[]; command?: string[]; env?: { name: string }[] }[]
    automountServiceAccountToken: boolean
  }
}

export const podOf = (w: World, kind: string, name: string) =>
  (w.get(kind, name)['spec'] as { template: Pod }).template

export const statusOf = (w: World, kind: string, name: string) =>
  w.get(kind, name)['status'] as {
    phase: string
    url: string
    message: string
    conditions: { type: string }[]
  }

export const condition = (w: World, kind: string, name: string, type: string) =>
  statusOf(w, kind, name).conditions.find((item) => item.type === type)

export const fileOf = (w: World, map: string, file = 'proxy.yaml') =>
  parse((w.get('ConfigMap', map)['data'] as Record<string, string>)[file] ?? '') as Record<string, unknown>
