const answer = await fetch("/api" + location.pathname);
document.getElementById("note").textContent = answer.ok ? (await answer.json()).text : "Open /notes/7";
