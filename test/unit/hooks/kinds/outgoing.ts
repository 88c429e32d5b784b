/** The parts of a response that the outgoing authentication tests read: the file, the environment, the conditions. */
import { parse } from 'yaml'
import { World } from '../../../hooks/world.ts'

export interface Config {
  backends: { name: string }[]
  outgoingAuth: { source: string; default?: object; backends?: Record<string, Record<string, object>> }
}

export const configOf = (w: World) =>
  parse(
    (w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>)['config.yaml'] ?? '',
  ) as Config

export const environment = (w: World) => {
  const { template } = w.get('Deployment', 'vmcp-door')['spec'] as {
    template: { spec: { containers: { env: { name: string; value?: string; valueFrom?: object }[] }[] } }
  }
  return new Map(template.spec.containers[0]?.env.map((item) => [item.name, item]))
}

export const ref = (name: string) => ({ type: 'externalAuthConfigRef', externalAuthConfigRef: { name } })

export const own = (name: string) => ({ externalAuthConfigRef: { name } })

export const statusOf = (w: World, kind: string, name: string) =>
  w.get(kind, name)['status'] as {
    phase: string
    conditions: { type: string; status: string; reason: string; message: string }[]
    discoveredBackends: { name: string; status: string; authConfigRef?: string; authType?: string }[]
  }

export const conditionOf = (w: World, kind: string, name: string, type: string) =>
  statusOf(w, kind, name).conditions.find((condition) => condition.type === type)
