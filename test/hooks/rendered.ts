/** The rendered virtual server called "door": its file, its status, its conditions. */
import { parse } from 'yaml'
import { virtual, world } from './resources.ts'
import type { Condition, Stored, World } from './world.ts'

export type Json = Record<string, never>

export const dataOf = (w: World, name = 'door-vmcp-config') =>
  w.get('ConfigMap', name)['data'] as Record<string, string>
export const configOf = (w: World) => parse(dataOf(w)['config.yaml'] ?? '') as Record<string, Json>
export const statusOf = (w: World) =>
  w.get('VirtualMCPServer', 'door')['status'] as Record<string, unknown> & { conditions: Condition[] }
export const condition = (w: World, type: string) => statusOf(w).conditions.find((item) => item.type === type)
export const door = (spec: object, ...others: Stored[]) => world(virtual(spec), ...others).ready()
