#!/usr/bin/env node
/**
 * The kubectl plugin `kubectl gatehouse`, which has the same commands as `gatehouse cluster`.
 *
 * kubectl runs the program `kubectl-gatehouse` in PATH.
 * Source: Kubernetes documentation, "Extend kubectl with plugins".
 */
import { addClusterCommands, clusterDescription } from './command.ts'
import { rootCommand, runProgram } from '../../toolkit/terminal/program.ts'

const program = rootCommand('kubectl gatehouse')
program.description(`${clusterDescription}\nThe same as gatehouse cluster.`)
addClusterCommands(program)

await runProgram(program)
