/** Workflow steps for tests of the checks, and a function that returns the errors of a definition. */
import { validateResource } from '../../../../hooks/index.ts'
import { resource } from '../../../hooks/resources.ts'

export const tool = (id: string, more: object = {}) => ({ id, tool: `x.${id}`, ...more })
export const violationsOf = (spec: object) =>
  validateResource(
    resource('VirtualMCPCompositeToolDefinition', 'w', {
      name: 'w',
      description: 'd',
      steps: [tool('a')],
      ...spec,
    }),
  ).violations.map(({ path, message }) => `${path}: ${message}`)
export const ask = (more: object = {}) => ({
  id: 'ask',
  type: 'elicitation',
  message: 'Sure?',
  schema: { type: 'object', properties: { ok: { type: 'boolean' } } },
  ...more,
})
export const each = (more: object = {}) => ({
  id: 'each',
  type: 'forEach',
  collection: '{{.params.list}}',
  step: { tool: 'x.y' },
  ...more,
})
