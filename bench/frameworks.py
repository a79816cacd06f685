"""Agent frameworks at the same job, as their documentation shows it; compared where they are installed.

They are given the newest message alone, without the history that the server sends along.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Turn = Callable[[], Awaitable[None]]
Job = dict[str, Any]
Ask = Callable[[], Awaitable[str]]


@asynccontextmanager
async def _with_graph(job: Job, classify: Ask, answer: Ask) -> AsyncIterator[Turn]:
    """A turn with the two calls to the Graph API around what a framework does."""
    import httpx2

    url = f"{job['graph']}/v25.0/1/messages"
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as graph:

        async def turn() -> None:
            typing = asyncio.create_task(graph.post(url, json={"status": "read", "message_id": "wamid.1"}))
            await classify()
            text = await answer()
            await graph.post(url, json={"to": "1", "type": "text", "text": {"body": text}})
            await typing

        yield turn


def _offered(job: Job, functions: dict[str, Any]) -> list[Any]:
    names = [tool["function"]["name"] for tool in job["tools"]]
    return [functions[name] for name in names if name in functions]


def _texts(messages: list[dict[str, Any]]) -> tuple[str, str]:
    """The system message and the newest one."""
    return str(messages[0]["content"]), str(messages[-1]["content"])


@asynccontextmanager
async def openai_agents(job: Job, functions: dict[str, Any]) -> AsyncIterator[Turn]:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    rules, asked = _texts(job["classify"])
    system, said = _texts(job["messages"])
    async with AsyncOpenAI(base_url=job["model"], api_key="none") as client:
        model = OpenAIChatCompletionsModel(model="stand-in", openai_client=client)
        tools = [function_tool(function) for function in _offered(job, functions)]
        classifier = Agent(name="classifier", instructions=rules, model=model)
        assistant = Agent(name="assistant", instructions=system, model=model, tools=tools)

        async def classify() -> str:
            return str((await Runner.run(classifier, asked)).final_output)

        async def answer() -> str:
            return str((await Runner.run(assistant, said)).final_output)

        async with _with_graph(job, classify, answer) as turn:
            yield turn


@asynccontextmanager
async def pydantic_ai(job: Job, functions: dict[str, Any]) -> AsyncIterator[Turn]:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    rules, asked = _texts(job["classify"])
    system, said = _texts(job["messages"])
    async with AsyncOpenAI(base_url=job["model"], api_key="none") as client:
        model = OpenAIChatModel("stand-in", provider=OpenAIProvider(openai_client=client))
        classifier = Agent(model, instructions=rules)
        assistant = Agent(model, instructions=system, tools=_offered(job, functions))

        async def classify() -> str:
            return str((await classifier.run(asked)).output)

        async def answer() -> str:
            return str((await assistant.run(said)).output)

        async with _with_graph(job, classify, answer) as turn:
            yield turn


@asynccontextmanager
async def langgraph(job: Job, functions: dict[str, Any]) -> AsyncIterator[Turn]:
    os.environ["LANGSMITH_TRACING"] = "false"
    from langchain_core.tools import StructuredTool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    rules, asked = _texts(job["classify"])
    system, said = _texts(job["messages"])
    model = ChatOpenAI(model="stand-in", base_url=job["model"], api_key="none")
    tools = [StructuredTool.from_function(coroutine=function) for function in _offered(job, functions)]
    assistant = create_react_agent(model, tools, prompt=system)

    async def classify() -> str:
        return str((await model.ainvoke([("system", rules), ("user", asked)])).content)

    async def answer() -> str:
        return str((await assistant.ainvoke({"messages": [("user", said)]}))["messages"][-1].content)

    async with _with_graph(job, classify, answer) as turn:
        yield turn


FRAMEWORKS = {"openai-agents": openai_agents, "pydantic-ai": pydantic_ai, "langgraph": langgraph}
MODULES = {"openai-agents": "agents", "pydantic-ai": "pydantic_ai", "langgraph": "langgraph.prebuilt"}
"""What must be importable for each."""
