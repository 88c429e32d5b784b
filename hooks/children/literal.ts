/**
 * Makes what the hooks write into a pod arrive as it stands.
 *
 * Kubernetes replaces `$(NAME)` in values of variables, in commands and in arguments by the variable of that name, and
 * `$$` by `$`. What a resource says is literal: a `$` in a password must stay one, and `$(NAME)` must not fetch another
 * backend's secret. A user's podTemplateSpec is a piece of a pod and keeps the rules of pods.
 * Source: Kubernetes core/v1, EnvVar.value, Container.command and args.
 */
import type { ContainerSpec, ContainerEnvVar, PodTemplateSpec } from './pod.ts'

/** A copy of a generated template in which nothing is expanded. */
export function literalTemplate(template: PodTemplateSpec): PodTemplateSpec {
  const { initContainers, containers } = template.spec
  return {
    ...template,
    spec: {
      ...template.spec,
      ...(initContainers && { initContainers: initContainers.map(literalContainer) }),
      containers: containers.map(literalContainer),
    },
  }
}

function literalContainer(container: ContainerSpec): ContainerSpec {
  const { command, args, env } = container
  return {
    ...container,
    ...(command && { command: command.map(escaped) }),
    ...(args && { args: args.map(escaped) }),
    ...(env && { env: env.map(literalVariable) }),
  }
}

function literalVariable(variable: ContainerEnvVar): ContainerEnvVar {
  return variable.value === undefined ? variable : { ...variable, value: escaped(variable.value) }
}

/** A text that the kubelet, and what expands like it, leaves as it is. */
export function escaped(text: string): string {
  return text.replaceAll('$', '$$$$')
}
